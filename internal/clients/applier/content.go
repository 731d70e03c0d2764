package applier

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Progress is the result of one call of an Applier. Message describes the state to users.
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
	// Check, if not nil, is called before anything is applied. If it fails, the call fails too.
	Check func(ctx context.Context) error
	// CheckDefinition, if not nil, is called before an existing CustomResourceDefinition of the owner is applied. present is the
	// definition on the cluster. If CheckDefinition fails, the call fails too.
	CheckDefinition func(ctx context.Context, cluster client.Reader, present, wanted *unstructured.Unstructured) error
	// Installed is the message of the result when all parts have been applied.
	Installed string
	// AwaitHealth makes each part wait until the objects of the preceding part are healthy. The installation is done only when all
	// objects are healthy.
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
	// Mask removes secrets from messages. If it is nil, messages are not changed.
	Mask func(text string) string
}

// Source provides the objects of a part. Its errors are of type *failure.Error. Repeated calls return the same result until the
// part changes.
type Source interface {
	// Digest returns a digest of the objects. A part whose digest changes is applied again.
	Digest(ctx context.Context) (string, error)
	// Objects returns the objects. The applier modifies them, so each call must return new objects.
	Objects(ctx context.Context) ([]*unstructured.Unstructured, error)
}

// mask removes the secrets of the part from a message.
func (p Part) mask(text string) string {
	if p.Mask == nil {
		return text
	}

	return p.Mask(text)
}

// where describes a part and its position, for messages.
func (o Owner) where(index, count int, name string) string {
	if o.part == "" {
		return name
	}

	return fmt.Sprintf("%s %d of %d (%s)", o.part, index+1, count, name)
}

// former returns the noun phrase for the objects of earlier content, for messages.
func (o Owner) former() string { return "objects of earlier " + o.source + "s" }
