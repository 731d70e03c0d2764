package applier

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/failure"
)

const (
	keyContent = "inventory.json.gz"
	keyRest    = "rest"
	// keyWrite gets a new value with each write, so that each write changes the resource version. Otherwise a write without
	// changes would not stop a concurrent writer.
	keyWrite = "write"

	// largestPart limits the data in one Secret, in bytes. etcd accepts 1.5 MiB for the encoded object, and base64 adds a third.
	largestPart = 900 << 10
	// largestInventory, in bytes, and maxValues limit the memory that reading an inventory needs: the owner of a cluster can
	// write any data into the Secrets, and decompression can enlarge the data a hundredfold. The limits allow inventories of a
	// hundred thousand objects.
	largestInventory = 16 << 20
	maxValues        = 1 << 20
	maxParts         = largestInventory/largestPart + 1
)

// stored identifies the Secrets from which an inventory was read. secret is the first of them; its resource version makes the
// next write conditional. secret is nil if the inventory was never stored. name is the name of the first Secret, and rest
// contains the names of the other Secrets.
type stored struct {
	name   string
	secret *corev1.Secret
	rest   []string
	// content is the data of all Secrets, still compressed.
	content []byte
}

// load reads the inventory. It ignores the inventory of another owner, which a restored or reused cluster may contain. If the
// inventory was recorded in another cluster, load returns its list of objects without the progress.
func load(ctx context.Context, from client.Client, owner Owner) (*inventory, error) {
	system := &corev1.Namespace{}
	if err := from.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return nil, err
	}
	secret := &corev1.Secret{}
	err := from.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: owner.inventory}, secret)
	if apierrors.IsNotFound(err) {
		return &inventory{Cluster: system.UID, Owner: owner.name, Kind: owner.kind, stored: stored{name: owner.inventory}}, nil
	}
	if err != nil {
		return nil, err
	}
	found := &inventory{}
	before := stored{name: owner.inventory, secret: secret, rest: strings.Fields(string(secret.Data[keyRest]))}
	// Each part costs a call. The limit prevents a forged list from occupying the worker.
	if len(before.rest) > maxParts {
		return nil, broken(owner, errTooLarge)
	}
	content := secret.Data[keyContent]
	for _, name := range before.rest {
		part := &corev1.Secret{}
		if err := from.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: name}, part); err != nil {
			if apierrors.IsNotFound(err) {
				err = broken(owner, err)
			}
			return nil, err
		}
		content = append(content, part.Data[keyContent]...)
	}
	if err := unpack(content, found); err != nil {
		return nil, broken(owner, err)
	}
	if found.Owner != owner.name || found.Kind != owner.kind {
		found = &inventory{Owner: owner.name, Kind: owner.kind}
	}
	if found.Cluster != system.UID {
		found.Cluster = system.UID
		found.forget()
	}
	before.content = content
	found.stored = before
	return found, nil
}

// broken returns the error for a damaged inventory. Its text says how to repair the inventory.
func broken(owner Owner, err error) error {
	return failure.Wrap(failure.Permanent, err, "the Secret %s/%s does not contain a valid inventory: delete it and retry; "+
		"then manually remove the objects that the %s no longer contains", metav1.NamespaceSystem, owner.inventory, owner.source).
		WithReason(failure.ReasonInternal, failure.ComponentRuntime)
}

// save stores the inventory. It fails with a conflict if the stored inventory has changed since it was read. The names of
// additional parts contain a digest of the content, so a crash never mixes parts of two inventories: save creates the new parts,
// then replaces the Secret that lists them, then deletes the old parts.
func (i *inventory) save(ctx context.Context, to client.Client) error {
	content, err := pack(i)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	parts := slices.Collect(slices.Chunk(content, largestPart))
	var rest []string
	for number, part := range parts[1:] {
		name := fmt.Sprintf("%s-%s-%d", i.stored.name, hex.EncodeToString(sum[:8]), number+1)
		secret := newSecret(name, map[string][]byte{keyContent: part})
		// A part with this name has the same content: an earlier attempt created it.
		if err := to.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		rest = append(rest, name)
	}
	head := newSecret(i.stored.name, map[string][]byte{
		keyContent: parts[0], keyRest: []byte(strings.Join(rest, " ")), keyWrite: []byte(uuid.NewString()),
	})
	if i.stored.secret == nil {
		err = to.Create(ctx, head)
	} else {
		head.ResourceVersion, head.UID = i.stored.secret.ResourceVersion, i.stored.secret.UID
		err = to.Update(ctx, head)
	}
	if err != nil {
		return err
	}
	old := i.stored.rest
	i.stored = stored{i.stored.name, head, rest, content}
	return remove(ctx, to, slices.DeleteFunc(slices.Clone(old), func(name string) bool { return slices.Contains(rest, name) }))
}

// differs reports whether the inventory differs from the stored one.
func (i *inventory) differs() bool {
	content, err := pack(i)
	return err != nil || i.stored.secret == nil || !bytes.Equal(content, i.stored.content)
}

// drop deletes all Secrets of the inventory. It starts with the Secret that lists the others. If this Secret has changed since it
// was read, drop fails with a conflict, because a new owner with the same name may have installed objects in the meantime.
func (i *inventory) drop(ctx context.Context, from client.Client) error {
	if i.stored.secret == nil {
		return nil
	}
	head := i.stored.secret

	same := client.Preconditions{UID: &head.UID, ResourceVersion: &head.ResourceVersion}
	if err := client.IgnoreNotFound(from.Delete(ctx, newSecret(i.stored.name, nil), same)); err != nil {
		return err
	}

	return remove(ctx, from, i.stored.rest)
}

// remove deletes Secrets in kube-system. Missing Secrets are not an error, because an earlier call may have been interrupted
// halfway.
func remove(ctx context.Context, from client.Client, names []string) error {
	for _, name := range names {
		secret := newSecret(name, nil)
		if err := client.IgnoreNotFound(from.Delete(ctx, secret)); err != nil {
			return err
		}
	}
	return nil
}

// newSecret returns a Secret in kube-system. Its label names the Provisioner as its manager.
func newSecret(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: name, Labels: map[string]string{"app.kubernetes.io/managed-by": FieldManager},
		},
		Data: data,
	}
}

// errTooLarge is the cause of the error if an inventory exceeds the limits.
var errTooLarge = errors.New("the inventory is too large")

// fits reports whether an encoded inventory is within the limits. It estimates the number of values by counting commas.
func fits(text []byte) bool {
	return len(text) <= largestInventory && bytes.Count(text, []byte(",")) <= maxValues
}

// pack encodes an inventory as compressed JSON. It fails with failure.Permanent for an inventory that load would reject.
func pack(from *inventory) ([]byte, error) {
	text, err := json.Marshal(from)
	if err != nil {
		return nil, fmt.Errorf("encoding the inventory: %w", err)
	}
	if !fits(text) {
		return nil, failure.New(failure.Permanent, "there are more objects than an inventory can contain").
			WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
	}
	packed := &bytes.Buffer{}
	writer := gzip.NewWriter(packed)
	_, err = writer.Write(text)
	if err := errors.Join(err, writer.Close()); err != nil {
		return nil, fmt.Errorf("compressing the inventory: %w", err)
	}
	return packed.Bytes(), nil
}

// unpack decodes an inventory from compressed JSON. It never reads more than the limits allow.
func unpack(content []byte, into *inventory) error {
	reader, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(reader, largestInventory+1))
	if err != nil {
		return err
	}
	if !fits(text) {
		return errTooLarge
	}
	return json.Unmarshal(text, into)
}
