package renderer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubernetesjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// ProcessName is argv[0] of the rendering processes. engines.Main recognizes them by this name.
const ProcessName = "bundle-renderer"

// Exit codes of a rendering process.
const (
	// ExitInvalid means that the bundle or its values cannot be rendered. The process has written the reason to its standard error.
	ExitInvalid = 3
	// ExitTimeout means that the process ended itself, because its parent had not ended it in time.
	ExitTimeout = 4
	// exitFatal is the exit code of the Go runtime after a fatal error: the stack or the memory has reached its limit. When memory
	// runs out, the runtime may fail in any way, so the message of the process is not reliable.
	exitFatal = 2
)

const (
	// maxMessage is the maximum number of bytes that are kept from the standard error of a process.
	maxMessage = 8 << 10
	// waitDelay is how long the pipes may stay open after the process has ended or was canceled, see exec.Cmd.WaitDelay.
	waitDelay = 2 * time.Second
)

// Options contains the limits for rendering. All fields are required.
type Options struct {
	// Timeout limits the duration of each rendering.
	Timeout time.Duration
	// Memory limits the memory of each rendering process, in bytes. It has an effect only on Linux.
	Memory int64
	// Input limits the total size of the bundle's files, and Output limits the size of the rendered objects as JSON, in bytes.
	Input, Output int64
	// Processes is the maximum number of concurrent renderings.
	Processes int
}

// DefaultOptions returns limits that suffice for large charts.
func DefaultOptions() Options {
	return Options{Timeout: 30 * time.Second, Memory: 1 << 30, Input: 128 << 20, Output: 64 << 20, Processes: 2}
}

// Renderer renders bundles. It is safe for concurrent use.
type Renderer struct {
	options Options
	slots   chan struct{}
	// executable returns the path of the executable to start for each rendering. Tests replace the function.
	executable func() (string, error)
}

// New returns a Renderer. For each rendering, it starts the executable of the current process again, which must therefore call
// engines.Main first.
func New(options Options) *Renderer {
	return &Renderer{options: options, slots: make(chan struct{}, options.Processes), executable: os.Executable}
}

// Release describes an installation of a chart.
type Release struct {
	// Name and Namespace are .Release.Name and .Release.Namespace.
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Values is a JSON or YAML document that overrides the chart's default values.
	Values string `json:"values"`
	// KubeVersion is the Kubernetes version of the target cluster, such as v1.36.0. APIVersions are offered to the chart in addition
	// to the API versions of Kubernetes itself.
	KubeVersion string   `json:"kubeVersion"`
	APIVersions []string `json:"apiVersions"`
	// SkipHooks omits the chart's hooks. SkipCRDs omits the objects in crds/.
	SkipHooks bool `json:"skipHooks"`
	SkipCRDs  bool `json:"skipCRDs"`
}

// Request is the first line that a rendering process reads from its standard input, as JSON. The files of the bundle follow as a
// tar archive.
type Request struct {
	// Chart is true if the bundle is a chart, and false if it is a kustomization. Release is nil if the chart must only be checked,
	// not rendered.
	Chart   bool     `json:"chart"`
	Release *Release `json:"release"`
	// Timeout and Memory are copied from Options.
	Timeout time.Duration `json:"timeout"`
	Memory  int64         `json:"memory"`
}

// CheckChart checks that a chart can be loaded. The error describes a fault of the chart, unless its kind is failure.Transient.
func (r *Renderer) CheckChart(ctx context.Context, bundle fs.FS) error {
	_, err := r.run(ctx, Request{Chart: true}, bundle)

	return err
}

// Chart returns the objects of a release: first the objects in crds/, and then the objects of the templates, in the order of the
// file names.
func (r *Renderer) Chart(ctx context.Context, bundle fs.FS, release Release) ([]*unstructured.Unstructured, error) {
	return r.run(ctx, Request{Chart: true, Release: &release}, bundle)
}

// Kustomization returns the objects of the kustomization at the root of the bundle.
func (r *Renderer) Kustomization(ctx context.Context, bundle fs.FS) ([]*unstructured.Unstructured, error) {
	return r.run(ctx, Request{}, bundle)
}

// run renders a bundle in a separate process.
func (r *Renderer) run(ctx context.Context, request Request, bundle fs.FS) ([]*unstructured.Unstructured, error) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return nil, failure.Wrap(failure.Transient, ctx.Err(), "waiting for other charts and kustomizations to be rendered")
	}

	executable, err := r.executable()
	if err != nil {
		return nil, failure.Wrap(failure.Transient, err, "finding the executable for rendering")
	}

	request.Timeout, request.Memory = r.options.Timeout, r.options.Memory

	input, err := r.input(request, bundle)
	if err != nil {
		return nil, err
	}

	limited, cancel := context.WithTimeout(ctx, r.options.Timeout)
	defer cancel()

	output, message := &bounded{limit: r.options.Output, full: cancel}, &bounded{limit: maxMessage, full: func() {}}
	process := exec.CommandContext(limited, executable)
	process.Args, process.Env, process.WaitDelay = []string{ProcessName}, []string{"PATH="}, waitDelay
	process.Stdin, process.Stdout, process.Stderr = input, output, message

	err = process.Run()

	switch {
	case output.overflown:
		return nil, failure.New(failure.Permanent, "the rendered objects have more than %d bytes", r.options.Output)
	case ctx.Err() != nil:
		return nil, failure.Wrap(failure.Transient, ctx.Err(), "rendering was interrupted")
	case limited.Err() != nil:
		return nil, r.tooSlow()
	case err != nil:
		return nil, r.explain(err, message.kept.String())
	}

	return decode(&output.kept)
}

// input returns the request, followed by the bundle's files.
func (r *Renderer) input(request Request, bundle fs.FS) (io.Reader, error) {
	var input bytes.Buffer

	if err := json.NewEncoder(&input).Encode(request); err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}

	return &input, pack(bundle, &input, r.options.Input)
}

// explain converts the failure of a rendering process to an error for users. message is the standard error output of the
// process.
func (r *Renderer) explain(err error, message string) error {
	ended, started := errors.AsType[*exec.ExitError](err)

	switch {
	case !started:
		return failure.Wrap(failure.Transient, err, "rendering cannot start")
	case ended.ExitCode() == ExitInvalid:
		return failure.New(failure.Permanent, "%s", strings.TrimSpace(message))
	case ended.ExitCode() == ExitTimeout:
		return r.tooSlow()
	case ended.ExitCode() == exitFatal && strings.Contains(message, "stack overflow"):
		return failure.New(failure.Permanent, "the templates call each other endlessly")
	case ended.ExitCode() == exitFatal:
		return failure.New(failure.Permanent, "rendering needs more than %d MiB of memory", r.options.Memory>>20)
	default:
		return failure.New(failure.Transient, "rendering ended unexpectedly: %s", ended)
	}
}

func (r *Renderer) tooSlow() error {
	return failure.New(failure.Transient, "rendering took longer than %s", r.options.Timeout)
}

// decode parses the output of a rendering process, which contains one object per line.
func decode(output *bytes.Buffer) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured

	for lines := bufio.NewReader(output); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return objects, nil
		}

		object := &unstructured.Unstructured{}
		if err := kubernetesjson.Unmarshal(line, &object.Object); err != nil {
			return nil, fmt.Errorf("decoding a rendered object: %w", err)
		}

		objects = append(objects, object)
	}
}

// bounded keeps the bytes that are written to it, up to a limit. When the limit is exceeded, it calls full.
type bounded struct {
	kept      bytes.Buffer
	limit     int64
	full      func()
	overflown bool
}

// Write implements io.Writer. It never fails: an error would close the pipe, and the closed pipe could make the process fail
// before it is killed.
func (b *bounded) Write(content []byte) (int, error) {
	if int64(b.kept.Len())+int64(len(content)) > b.limit {
		b.overflown = true
		b.full()

		return len(content), nil
	}

	return b.kept.Write(content)
}
