package deployments

import (
	"bytes"
	"fmt"
	"maps"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/format"
	"github.com/environment-broker/environment-broker/internal/clients/applier"
	"github.com/environment-broker/environment-broker/internal/secret"
)

const (
	// maxDifferences is the maximum number of objects in a comparison. maxDifference is the maximum size of one object's diff, in
	// bytes. Once all diffs together reach maxComparison bytes, the diffs of further objects are omitted.
	maxDifferences = 1000
	maxDifference  = 16 << 10
	maxComparison  = 256 << 10
	// maxLines is the maximum number of lines that are compared for an object, because comparing more would take too long.
	maxLines = 5000
	// contextLines is the number of unchanged lines around each difference.
	contextLines = 3
	// noFile takes the place of the object's name in a diff if the object does not exist yet.
	noFile = "/dev/null"
)

// comparison converts differences to the form in which the status shows them. The result contains neither values of Secrets nor
// the strings in masked.
func comparison(bundle string, differences []applier.Difference, masked []string) *v1alpha1.Comparison {
	result, size := &v1alpha1.Comparison{Bundle: bundle, Differences: []v1alpha1.ObjectDifference{}}, 0

	// Mask the values of Secrets in other objects, too.
	for _, difference := range differences {
		for _, object := range []*unstructured.Unstructured{difference.Before, difference.After} {
			if object != nil {
				masked = append(masked, format.SecretValues(object)...)
			}
		}
	}

	for _, difference := range differences {
		if len(result.Differences) == maxDifferences {
			result.Omitted = len(differences) - maxDifferences

			break
		}

		text := "omitted: the comparison is too large\n"
		if size < maxComparison {
			text = unified(difference, masked)
		}

		size += len(text)

		result.Differences = append(result.Differences, v1alpha1.ObjectDifference{Action: difference.Action, Object: difference.Object, Diff: text})
	}

	return result
}

// unified returns the unified diff of an object in YAML. It is empty for an object that would be deleted.
func unified(difference applier.Difference, masked []string) string {
	if difference.Action == applier.ActionDelete {
		return ""
	}

	before, after := lines(difference.Before, difference.After, "before", masked), lines(difference.After, difference.Before, "after", masked)
	if len(before) > maxLines || len(after) > maxLines {
		return fmt.Sprintf("omitted: the object has %d lines before and %d after\n", len(before), len(after))
	}

	from := difference.Object
	if difference.Before == nil {
		from = noFile
	}

	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: before, B: after, FromFile: from, ToFile: difference.Object, Context: contextLines})

	switch {
	case err != nil:
		return "omitted: the objects cannot be compared\n"
	case text == "":
		return "only masked values differ\n"
	case len(text) > maxDifference:
		text = text[:max(0, strings.LastIndexByte(text[:maxDifference], '\n'))] + "\nomitted: more lines\n"
	}

	return secret.MaskIn(text, masked...)
}

// lines returns the compared fields of an object as lines of YAML. It masks the values of a Secret, and adds the mark to the
// values that differ from the values in other.
func lines(object, other *unstructured.Unstructured, mark string, masked []string) []string {
	if object == nil {
		return nil
	}

	fields := maps.Clone(object.Object)
	delete(fields, "status")

	if format.IsSecret(object) {
		fields = maskSecret(fields, other, mark)
	}

	metadata := map[string]any{"name": object.GetName()}
	if namespace := object.GetNamespace(); namespace != "" {
		metadata["namespace"] = namespace
	}

	for key, values := range map[string]map[string]string{"labels": object.GetLabels(), "annotations": object.GetAnnotations()} {
		if values = maps.Clone(values); format.IsSecret(object) {
			delete(values, corev1.LastAppliedConfigAnnotation) // this annotation contains the values
		}

		if len(values) > 0 {
			metadata[key] = values
		}
	}

	if finalizers := object.GetFinalizers(); len(finalizers) > 0 {
		metadata["finalizers"] = finalizers
	}

	if owners := object.GetOwnerReferences(); len(owners) > 0 {
		metadata["ownerReferences"] = owners
	}

	fields["metadata"] = metadata

	text, err := yaml.Marshal(maskedIn(fields, masked))
	if err != nil {
		return []string{"the object cannot be shown\n"}
	}

	return strings.SplitAfter(string(bytes.TrimSuffix(text, []byte("\n")))+"\n", "\n")
}

// maskSecret masks the values of a Secret, and adds the mark to the values that differ from the values in other.
func maskSecret(fields map[string]any, other *unstructured.Unstructured, mark string) map[string]any {
	for _, key := range []string{"data", "stringData"} {
		values, ok := fields[key].(map[string]any)
		if !ok {
			continue
		}

		var others map[string]any
		if other != nil {
			others, _, _ = unstructured.NestedMap(other.Object, key)
		}

		masked := map[string]any{}

		for name, value := range values {
			masked[name] = secret.Mask
			if has, known := others[name]; known && has != value {
				masked[name] = secret.Mask + " (" + mark + ")"
			}
		}

		fields[key] = masked
	}

	return fields
}

// maskedIn returns a copy of a value in which the given strings are masked. Masking must precede the conversion to YAML, which
// may split a string into several lines.
func maskedIn(value any, masked []string) any {
	switch value := value.(type) {
	case string:
		return secret.MaskIn(value, masked...)
	case map[string]string:
		copied := map[string]any{}
		for key, each := range value {
			copied[key] = secret.MaskIn(each, masked...)
		}

		return copied
	case map[string]any:
		copied := map[string]any{}
		for key, each := range value {
			copied[key] = maskedIn(each, masked)
		}

		return copied
	case []any:
		copied := make([]any, 0, len(value))
		for _, each := range value {
			copied = append(copied, maskedIn(each, masked))
		}

		return copied
	default:
		return value
	}
}
