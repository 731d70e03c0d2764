// Package crdsafety finds changes of CustomResourceDefinitions that could make existing objects invalid or lose their data.
//
// Definition compares the schemas of the versions that both definitions have: each field must stay, and accept what it accepted before. Objects
// validates existing objects against the new schemas, because the comparison cannot judge every keyword. Both report the version and the
// field. The annotation AnnotationValidation permits an unsafe change.
package crdsafety
