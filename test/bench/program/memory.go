package program

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// MiB is the unit in which memory is told.
const MiB = 1 << 20

// Memory is what a program has of the machine's memory, in bytes.
type Memory struct {
	Resident, Peak int64
}

// Memory tells what the program has at this moment.
func (p *Program) Memory() (Memory, error) { return MemoryOf(p.command.Process.Pid) }

// MemoryOf tells what a process has at this moment.
func MemoryOf(id int) (Memory, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", id))
	if err != nil {
		return Memory{}, fmt.Errorf("reading the memory of process %d: %w", id, err)
	}
	defer file.Close()

	var memory Memory

	for lines := bufio.NewScanner(file); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")

		switch name {
		case "VmRSS":
			memory.Resident = kilobytes(value)
		case "VmHWM":
			memory.Peak = kilobytes(value)
		}
	}

	if memory.Resident == 0 {
		return Memory{}, fmt.Errorf("the system tells no memory of process %d", id)
	}

	return memory, nil
}

// kilobytes reads a value like ` 51234 kB`. What cannot be read is 0.
func kilobytes(value string) int64 {
	const kilobyte = 1 << 10

	count, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
	if err != nil {
		return 0
	}

	return count * kilobyte
}
