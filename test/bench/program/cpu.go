package program

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

const (
	// MiB is the unit of memory figures.
	MiB = 1 << 20
	// tick is the unit of CPU times in Linux's /proc.
	tick = 10 * time.Millisecond
)

// Memory is the memory of a process, in bytes.
type Memory struct {
	Resident, Peak int64
}

// Memory returns the program's present memory.
func (p *Program) Memory() (Memory, error) { return MemoryOf(p.command.Process.Pid) }

// MemoryOf returns the present memory of a process.
func MemoryOf(id int) (Memory, error) {
	process, err := procfs.NewProc(id)
	if err != nil {
		return Memory{}, fmt.Errorf("reading the memory of process %d: %w", id, err)
	}

	status, err := process.NewStatus()
	if err != nil {
		return Memory{}, fmt.Errorf("reading the memory of process %d: %w", id, err)
	}

	return Memory{Resident: int64(status.VmRSS), Peak: int64(status.VmHWM)}, nil //nolint:gosec // memory fits
}

// CPU returns the user and system time of the program and its children.
func (p *Program) CPU() (time.Duration, error) { return CPUOf(p.command.Process.Pid) }

// CPUOf returns the user and system time of a process and its children, including those that have ended.
func CPUOf(id int) (time.Duration, error) {
	processes, err := procfs.AllProcs()
	if err != nil {
		return 0, fmt.Errorf("listing processes: %w", err)
	}

	var (
		total time.Duration
		found bool
	)

	for _, process := range processes {
		stat, err := process.Stat()

		switch {
		case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ESRCH): // it has ended since
		case err != nil:
			return 0, fmt.Errorf("reading the CPU time of process %d: %w", process.PID, err)
		case process.PID == id || stat.PPID == id:
			found = found || process.PID == id
			total += time.Duration(int(stat.UTime)+int(stat.STime)+stat.CUTime+stat.CSTime) * tick
		}
	}

	if !found {
		return 0, fmt.Errorf("reading the CPU time of process %d: no such process", id)
	}

	return total, nil
}
