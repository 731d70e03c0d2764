package crdsafety

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// AnnotationValidation is an annotation of CustomResourceDefinitions. The value "false" permits unsafe changes.
const AnnotationValidation = "core.rukpak.io/safe-crd-upgrade-validation"

// Violation is an unsafe change to a CustomResourceDefinition.
type Violation struct {
	// Definition is the name of the CustomResourceDefinition. Version and Field are empty if the change does not concern a single version
	// or field.
	Definition, Version, Field string
	Problem                    string
}

// String returns the violation as one line, for messages.
func (v Violation) String() string {
	text := v.Definition
	if v.Version != "" {
		text += ", version " + v.Version
	}

	if v.Field != "" {
		text += ", field " + v.Field
	}

	return text + ": " + v.Problem
}

// Permitted reports whether at least one of the definitions has the annotation that permits unsafe changes.
func Permitted(definitions ...*apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(definitions, func(one *apiextensionsv1.CustomResourceDefinition) bool {
		return one.Annotations[AnnotationValidation] == "false"
	})
}

// Definition returns the unsafe changes between two definitions. It does not read existing objects.
func Definition(present, wanted *apiextensionsv1.CustomResourceDefinition) (violations []Violation) {
	report := func(version, field, problem string) {
		violations = append(violations, Violation{wanted.Name, version, field, problem})
	}

	if present.Spec.Scope != wanted.Spec.Scope {
		report("", "", fmt.Sprintf("the scope changes from %s to %s", present.Spec.Scope, wanted.Spec.Scope))
	}

	for _, version := range present.Status.StoredVersions {
		if versionOf(wanted, version) == nil {
			report(version, "", "the version is removed, but objects may be stored in it")
		}
	}

	for i := range wanted.Spec.Versions {
		after := &wanted.Spec.Versions[i]

		before := versionOf(present, after.Name)
		if before == nil || schemaOf(before) == nil {
			continue
		}

		if schemaOf(after) == nil {
			report(after.Name, "", "the schema is removed")

			continue
		}

		compare := comparison{report: func(field, problem string) { report(after.Name, field, problem) }}
		compare.schema("", schemaOf(before), schemaOf(after))
	}

	return violations
}

func versionOf(definition *apiextensionsv1.CustomResourceDefinition, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range definition.Spec.Versions {
		if definition.Spec.Versions[i].Name == name {
			return &definition.Spec.Versions[i]
		}
	}

	return nil
}

func schemaOf(version *apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	if version.Schema == nil {
		return nil
	}

	return version.Schema.OpenAPIV3Schema
}
