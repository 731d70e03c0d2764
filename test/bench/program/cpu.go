package program

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit in which Linux tells the time that a process has had.
const tick = 10 * time.Millisecond

// processor is what the system tells of a process's time.
type processor struct {
	parent int
	// used is the time of the process itself, ended that of the processes that it has started and that have ended.
	used, ended time.Duration
}

// CPU is how long the program has had a core, in its own code and in the system's.
func (p *Program) CPU() (time.Duration, error) { return CPUOf(p.command.Process.Pid) }

// CPUOf is how long a process has had a core, and those that it has started, in their own code and in the system's.
func CPUOf(id int) (time.Duration, error) {
	own, err := processorOf(strconv.Itoa(id))
	if err != nil {
		return 0, fmt.Errorf("reading the CPU time of process %d: %w", id, err)
	}

	others, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, fmt.Errorf("listing processes: %w", err)
	}

	total := own.used + own.ended

	for _, other := range others {
		child, err := processorOf(filepath.Base(other))

		switch {
		case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ESRCH): // it has ended since
		case err != nil:
			return 0, fmt.Errorf("reading the CPU time of %s: %w", other, err)
		case child.parent == id:
			total += child.used + child.ended
		}
	}

	return total, nil
}

func processorOf(id string) (processor, error) {
	content, err := os.ReadFile(filepath.Join("/proc", id, "stat"))
	if err != nil {
		return processor{}, err
	}

	return parseProcessor(string(content))
}

// parseProcessor reads a line of /proc/<pid>/stat. The name of the program, in parentheses, may hold anything.
func parseProcessor(line string) (processor, error) {
	const parent, used, ended, last = 1, 11, 13, 15 // counted from behind the name

	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	if len(fields) < last {
		return processor{}, fmt.Errorf("the system tells no times: %q", line)
	}

	numbers := make([]int64, last)

	for i := parent; i < last; i++ {
		number, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return processor{}, fmt.Errorf("the system tells no times: %w", err)
		}

		numbers[i] = number
	}

	return processor{
		parent: int(numbers[parent]),
		used:   time.Duration(numbers[used]+numbers[used+1]) * tick,
		ended:  time.Duration(numbers[ended]+numbers[ended+1]) * tick,
	}, nil
}
