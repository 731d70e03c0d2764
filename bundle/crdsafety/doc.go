// Package crdsafety finds changes of CustomResourceDefinitions that could make existing objects invalid or lose their data.
//
// Definition compares the schemas of the versions that both definitions contain: each field must still exist, and must still accept all
// values that it accepted before. Objects validates existing objects against the new schemas, because the comparison does not cover all
// keywords. Both report the version and the field. The annotation AnnotationValidation permits an unsafe change.
package crdsafety
