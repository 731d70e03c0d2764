package crdsafety

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kinds "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// MaxObjects is the maximum number of objects of a kind that Objects validates. page is the maximum number of objects that one
	// call to the API server returns.
	MaxObjects = 1000
	page       = 100
	// maxViolations is the number of violations after which Objects returns.
	maxViolations = 5
)

// Objects returns violations for existing objects of the defined kind that the present schema of their version accepts, but the
// wanted schema would reject. It validates up to MaxObjects objects, and stops after a few violations. Validation rules (CEL) are
// not evaluated.
func Objects(ctx context.Context, reader client.Reader, present, wanted *apiextensionsv1.CustomResourceDefinition) (violations []Violation, err error) {
	for i := range wanted.Spec.Versions {
		after := &wanted.Spec.Versions[i]

		before := versionOf(present, after.Name)
		if before == nil || !before.Served || schemaOf(before) == nil || schemaOf(after) == nil || reflect.DeepEqual(schemaOf(before), schemaOf(after)) {
			continue
		}

		old, err := validator(schemaOf(before))
		if err != nil {
			return nil, err
		}

		next, err := validator(schemaOf(after))
		if err != nil {
			return nil, err
		}

		kind := kinds.GroupVersionKind{Group: present.Spec.Group, Version: after.Name, Kind: present.Spec.Names.Kind}

		err = each(ctx, reader, kind, func(object *unstructured.Unstructured) bool {
			content := object.UnstructuredContent()
			if result := next.Validate(content); !result.IsValid() && old.Validate(content).IsValid() {
				violations = append(violations, Violation{
					Definition: wanted.Name, Version: after.Name,
					Problem: fmt.Sprintf("the existing %s %s would be invalid: %v", kind.Kind, client.ObjectKeyFromObject(object), result.Errors[0]),
				})
			}

			return len(violations) < maxViolations
		})
		if err != nil || len(violations) >= maxViolations {
			return violations, err
		}
	}

	return violations, nil
}

// each calls visit for each object of the given kind, until visit returns false or MaxObjects objects were read. If the API server
// does not serve the kind, visit is never called.
func each(ctx context.Context, reader client.Reader, kind kinds.GroupVersionKind, visit func(*unstructured.Unstructured) bool) error {
	kind.Kind += "List"

	for seen, next := 0, ""; seen < MaxObjects; {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)

		if err := reader.List(ctx, list, client.Limit(page), client.Continue(next)); err != nil {
			if meta.IsNoMatchError(err) {
				return nil
			}

			return fmt.Errorf("listing the objects of %s: %w", kind, err)
		}

		for i := range list.Items {
			if !visit(&list.Items[i]) {
				return nil
			}
		}

		seen += len(list.Items)

		if next = list.GetContinue(); next == "" {
			return nil
		}
	}

	return nil
}

// validator returns a validator for a schema from a CustomResourceDefinition.
func validator(from *apiextensionsv1.JSONSchemaProps) (*validate.SchemaValidator, error) {
	text, err := json.Marshal(from)
	if err != nil {
		return nil, fmt.Errorf("encoding a schema: %w", err)
	}

	converted := &spec.Schema{}
	if err := json.Unmarshal(text, converted); err != nil {
		return nil, fmt.Errorf("decoding a schema: %w", err)
	}

	return validate.NewSchemaValidator(converted, nil, "", strfmt.Default), nil
}
