// Package crdsafety finds changes to CustomResourceDefinitions that could make existing objects invalid or lose their data.
//
// Definition compares the schemas of the versions that both definitions contain: each field must still exist, and must still accept all
// values that it accepted before. Objects validates existing objects against the new schemas, because the comparison does not cover all
// keywords. Definition reports the version and the field, and Objects the version and the object. The annotation AnnotationValidation
// permits an unsafe change.
package crdsafety
