package child

import (
	"bytes"
	"fmt"
	"os"
)

const (
	// previousLog is appended to the name of a log when a new start begins a new one.
	previousLog = ".previous"
	// tailLines and tailBytes bound what an error message quotes of a log.
	tailLines = 5
	tailBytes = 4096
)

// lastLines returns the end of a log for a message, whatever can be read of it.
func lastLines(path string) string {
	content, err := readTail(path)
	if err != nil {
		return fmt.Sprintf("(the log cannot be read: %v)", err)
	}
	lines := bytes.Split(bytes.TrimRight(content, "\n"), []byte("\n"))
	if len(lines) > tailLines {
		lines = lines[len(lines)-tailLines:]
	}
	return string(bytes.Join(lines, []byte("\n")))
}

func readTail(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	tail := make([]byte, min(info.Size(), tailBytes))
	n, err := file.ReadAt(tail, info.Size()-int64(len(tail)))
	return tail[:n], err
}
