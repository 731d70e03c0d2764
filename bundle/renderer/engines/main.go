// Package engines renders charts with Helm and kustomizations with Kustomize. Its code runs in the processes that package renderer
// starts.
package engines

import (
	"archive/tar"
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"runtime/debug"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/environment-broker/environment-broker/bundle/renderer"
	"github.com/environment-broker/environment-broker/internal/failure"
)

const (
	// grace is how long after the timeout a process ends itself. Normally, its parent ends it earlier, unless the parent has died.
	grace = 5 * time.Second
	// maxMessage is the maximum length of an error message in bytes.
	maxMessage = 4 << 10
)

// Main checks whether a Renderer started this process. If so, it renders and ends the process. Otherwise, it returns immediately.
func Main() {
	if os.Args[0] != renderer.ProcessName {
		return
	}

	log.SetOutput(io.Discard) // Helm and Kustomize log warnings

	if err := protected(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, failure.Shorten(err.Error(), maxMessage))
		os.Exit(renderer.ExitInvalid)
	}

	os.Exit(0)
}

// protected calls run. It converts a panic in Helm or Kustomize to an error, because the content of the bundle must have caused
// it.
func protected(input io.Reader, output io.Writer) (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("rendering the bundle crashed Helm or Kustomize: %v", problem)
		}
	}()

	return run(input, output)
}

// file is a file in the bundle. Its name is the path in the bundle.
type file struct {
	name    string
	content []byte
}

// run reads a request and the bundle's files from the input, and writes the rendered objects to the output, one per line.
func run(input io.Reader, output io.Writer) error {
	reader := bufio.NewReader(input)

	line, err := reader.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}

	var request renderer.Request
	if err := json.Unmarshal(line, &request); err != nil {
		return fmt.Errorf("decoding the request: %w", err)
	}

	if err := isolate(request); err != nil {
		return err
	}

	files, err := readFiles(reader)
	if err != nil {
		return fmt.Errorf("reading the bundle: %w", err)
	}

	objects, err := render(request, files)
	if err != nil {
		return err
	}

	for _, object := range objects {
		if err := json.NewEncoder(output).Encode(object.Object); err != nil {
			return fmt.Errorf("writing %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}

	return nil
}

// isolate limits the time and the memory of the process, and disables http.DefaultTransport. Other network connections are not
// blocked: apart from HTTP, the engines use only external programs such as git, which the process cannot find because its PATH is
// empty.
func isolate(request renderer.Request) error {
	time.AfterFunc(request.Timeout+grace, func() { os.Exit(renderer.ExitTimeout) })

	const part = 4 // a quarter is reserved for the Go runtime and for garbage

	debug.SetMemoryLimit(request.Memory - request.Memory/part)

	bytes := uint64(max(request.Memory, 0))
	limit := syscall.Rlimit{Cur: bytes, Max: bytes}
	if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &limit); err != nil {
		return fmt.Errorf("limiting the memory: %w", err)
	}

	http.DefaultTransport = noNetwork{}

	return nil
}

// noNetwork rejects all requests. Kustomize would fetch remote files with http.DefaultTransport.
type noNetwork struct{}

// RoundTrip implements http.RoundTripper.
func (noNetwork) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("remote files are not fetched: put them into the bundle")
}

func readFiles(from io.Reader) (files []file, err error) {
	for archive := tar.NewReader(from); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}

		if err != nil {
			return nil, err
		}

		content, err := io.ReadAll(archive)
		if err != nil {
			return nil, err
		}

		files = append(files, file{header.Name, content})
	}
}

func render(request renderer.Request, files []file) ([]*unstructured.Unstructured, error) {
	switch {
	case request.Release != nil:
		return renderChart(files, *request.Release)
	case request.Chart:
		_, err := loadChart(files)

		return nil, err
	default:
		return kustomize(files)
	}
}
