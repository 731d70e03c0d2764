package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/archive"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// defaultTimeout limits the duration of a fetch, including all its requests.
const defaultTimeout = 5 * time.Minute

// Request identifies the content that a Fetcher must fetch.
type Request struct {
	// Bundle is the name of the Bundle.
	Bundle string
	// Source is the source from the spec, or the resolved source from an earlier fetch.
	Source v1alpha1.BundleSource
}

// Result describes fetched content.
type Result struct {
	// Resolved is the source with all movable references pinned. Sources that cannot be pinned are unchanged.
	Resolved v1alpha1.BundleSource
	// Pending is the reason why there is no content yet, or empty once the content is fetched.
	Pending string
}

// Fetcher fetches sources of one type.
type Fetcher interface {
	// Fetch writes the content to into, which must be an empty folder. If Fetch fails, the folder may contain a part of the content.
	Fetch(ctx context.Context, request Request, into *os.Root) (Result, error)
}

// Options configures the sources.
type Options struct {
	// Reader reads the Secrets and ConfigMaps that sources name, from Namespace.
	Reader    client.Reader
	Namespace string
	// Uploads returns the content that clients have uploaded.
	Uploads Uploads
	// Limits applies to the fetched content. Zero fields have the defaults of package archive.
	Limits archive.Limits
	// Timeout limits the duration of a fetch. The default is 5 minutes.
	Timeout time.Duration
	// KeysFile is a file with public keys, one of which must have signed each image. If KeysFile is empty, only images whose source
	// has a verification must be signed.
	KeysFile string
	// Temporary is the folder for repositories and downloads during a fetch. If it is empty, the system's temporary folder is used.
	Temporary string
}

// Sources contains a Fetcher for each source type that the provisioner supports.
type Sources map[v1alpha1.SourceType]Fetcher

// New returns the Fetchers for all source types.
func New(options Options) Sources {
	if options.Timeout == 0 {
		options.Timeout = defaultTimeout
	}

	if defaults := archive.DefaultLimits(); options.Limits.CompressedBytes == 0 {
		options.Limits.CompressedBytes = defaults.CompressedBytes
	}

	objects := objects{options.Reader, options.Namespace}

	return Sources{
		v1alpha1.SourceTypeHTTP:       &httpSource{options, objects},
		v1alpha1.SourceTypeConfigMaps: &configMapSource{options, objects},
		v1alpha1.SourceTypeUpload:     &uploadSource{options},
		v1alpha1.SourceTypeImage:      &imageSource{options, objects},
		v1alpha1.SourceTypeGit:        &gitSource{options, objects},
	}
}

// Fetch fetches a source with the Fetcher for its type. If there is no Fetcher for the type, or if the block of the type is not
// set, the error is terminal.
func (s Sources) Fetch(ctx context.Context, request Request, into *os.Root) (Result, error) {
	if !hasBlock(request.Source) {
		return Result{}, failure.New(failure.Invalid, "source type %[1]s requires the field source.%[1]s", request.Source.Type)
	}

	fetcher := s[request.Source.Type]
	if fetcher == nil {
		return Result{}, failure.New(failure.Invalid, "source type %s is not supported by this provisioner", request.Source.Type)
	}

	return fetcher.Fetch(ctx, request, into)
}

// hasBlock reports whether the source has the field that its type requires, such as source.image for the type image. For objects
// that the API server has validated, this is always true.
func hasBlock(source v1alpha1.BundleSource) bool {
	switch source.Type {
	case v1alpha1.SourceTypeImage:
		return source.Image != nil
	case v1alpha1.SourceTypeGit:
		return source.Git != nil
	case v1alpha1.SourceTypeHTTP:
		return source.HTTP != nil
	case v1alpha1.SourceTypeConfigMaps:
		return len(source.ConfigMaps) > 0
	case v1alpha1.SourceTypeUpload:
		return source.Upload != nil
	default:
		return true
	}
}

// Terminal reports whether fetching the same source again would fail in the same way.
func Terminal(err error) bool {
	_, invalid := errors.AsType[*archive.InvalidError](err)
	if refused, ok := errors.AsType[*SignatureError](err); ok {
		return refused.Reason == v1alpha1.ReasonSignatureInvalid // a missing signature is not terminal: an image is signed only after it is pushed
	}

	return invalid || failure.Is(err, failure.Invalid) || failure.Is(err, failure.Permanent)
}

// transient returns an error that might not occur in a later fetch of the same source.
func transient(format string, args ...any) error {
	return failure.New(failure.Transient, format, args...)
}

// terminal returns an error that would occur in every fetch of the same source.
func terminal(format string, args ...any) error {
	return failure.New(failure.Permanent, format, args...)
}

// unpacked converts an error that occurred while unpacking content to a message for users. origin names the place that the content
// came from.
func unpacked(err error, origin string) error {
	_, known := errors.AsType[*failure.Error](err)
	_, invalid := errors.AsType[*archive.InvalidError](err)

	switch {
	case err == nil || known:
		return err
	case invalid:
		return failure.Wrap(failure.Permanent, err, "%s has content that is not accepted", origin)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return transient("%s did not send the content in time", origin)
	default:
		return fmt.Errorf("fetching %s: %w", origin, withoutAddress(err))
	}
}

// objects reads Secrets and ConfigMaps in one namespace.
type objects struct {
	reader    client.Reader
	namespace string
}

// get reads an object. If the object does not exist, the error asks the user to create it.
func (o objects) get(ctx context.Context, kind, name string, into client.Object) error {
	err := o.reader.Get(ctx, client.ObjectKey{Namespace: o.namespace, Name: name}, into)

	switch {
	case apierrors.IsNotFound(err):
		return transient("the %s %s does not exist in the namespace %s: create it", kind, name, o.namespace)
	case err != nil:
		return failure.Wrap(failure.Transient, err, "the %s %s cannot be read", kind, name)
	default:
		return nil
	}
}

// secret reads a Secret and checks that none of the given keys is missing or empty.
func (o objects) secret(ctx context.Context, name string, keys ...string) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	if err := o.get(ctx, "Secret", name, secret); err != nil {
		return nil, err
	}

	for _, key := range keys {
		if len(secret.Data[key]) == 0 {
			return nil, transient("the Secret %s has no key %s; it must have the keys %s", name, key, strings.Join(keys, ", "))
		}
	}

	return secret.Data, nil
}

// The keys in Secrets that contain credentials.
const (
	usernameKey   = "username"
	passwordKey   = "password"
	privateKeyKey = "ssh-privatekey"
	knownHostsKey = "ssh-knownhosts"
)
