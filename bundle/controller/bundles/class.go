package bundles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Format checks bundles, and converts them to the format that BundleDeployments read. An error of the kind failure.Transient may
// be temporary. All other errors mean that the bundle is invalid.
type Format interface {
	Convert(ctx context.Context, bundle fs.FS) (fs.FS, error)
}

// Class is a provisioner class. All Bundles whose spec.provisionerClassName is Name have the format Format.
type Class struct {
	Name   string
	Format Format
}

// byName returns the formats, keyed by class name. It returns an error if a name occurs twice or is not an RFC 1123 DNS label.
func byName(classes []Class) (map[string]Format, error) {
	formats := map[string]Format{}

	var errs []error

	for _, class := range classes {
		if problems := validation.IsDNS1123Label(class.Name); len(problems) > 0 {
			errs = append(errs, fmt.Errorf("the class name %q is not valid: %s", class.Name, strings.Join(problems, ", ")))
		}

		if _, twice := formats[class.Name]; twice {
			errs = append(errs, fmt.Errorf("the class name %q is used twice: names must be unique", class.Name))
		}

		formats[class.Name] = class.Format
	}

	if len(classes) == 0 {
		errs = append(errs, errors.New("no provisioner class for Bundles is configured"))
	}

	return formats, errors.Join(errs...)
}
