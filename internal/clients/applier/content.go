package applier

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Progress is the result of one call. Message describes the state to users.
type Progress struct {
	Done    bool
	Message string
	// Objects are the installed objects. They are set once Apply is done.
	Objects []Object
}

// Content contains the objects that an owner wants to have on a cluster, and rules for their installation.
type Content struct {
	// Parts are applied in this order.
	Parts []Part
	// Check is called before anything is applied, and may be nil. Its error ends the call.
	Check func(ctx context.Context) error
	// CheckDefinition is called before an existing CustomResourceDefinition of the owner is applied, with the present and the wanted
	// definition. It may be nil. Its error ends the call.
	CheckDefinition func(ctx context.Context, cluster client.Reader, present, wanted *unstructured.Unstructured) error
	// Installed is the message when all parts are applied.
	Installed string
	// AwaitHealth makes each part wait until the objects of the preceding part are healthy. The call is done only when all objects are
	// healthy.
	AwaitHealth bool
	// SkipUnchanged prevents all writes, even to the inventory, while the cluster already has the content.
	SkipUnchanged bool
}

// Part is a set of objects. Its name is unique in the content.
type Part struct {
	Name string
	// Namespace is the namespace for objects that need one and do not specify it. It is created if it does not exist.
	Namespace string
	Source    Source
	// Mask removes secrets from messages. It may be nil.
	Mask func(text string) string
}

// Source provides the objects of a part. Errors come from package failure. Repeated calls return the same result until the part changes.
type Source interface {
	// Digest returns a digest of the objects. A part whose digest changes is applied again.
	Digest(ctx context.Context) (string, error)
	// Objects returns the objects. The applier modifies them, so each call must return new objects.
	Objects(ctx context.Context) ([]*unstructured.Unstructured, error)
}

// mask removes the secrets of the part from a text.
func (p Part) mask(text string) string {
	if p.Mask == nil {
		return text
	}

	return p.Mask(text)
}

// where describes a part and its position in messages.
func (o Owner) where(index, count int, name string) string {
	if o.part == "" {
		return name
	}

	return fmt.Sprintf("%s %d of %d (%s)", o.part, index+1, count, name)
}

// former describes objects of earlier content in messages.
func (o Owner) former() string { return "objects of earlier " + o.source + "s" }
