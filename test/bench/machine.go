package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// machine describes the machine of a run.
type machine struct {
	processor  string
	cores      int
	memoryGiB  int
	goVersion  string
	postgres   string
	fsync      string
	commitMode string
}

// machine reads the description from /proc and from the database.
func (s *scope) machine(ctx context.Context) (machine, error) {
	found := machine{
		processor: firstField("/proc/cpuinfo", "model name"), cores: runtime.NumCPU(), goVersion: runtime.Version(),
		memoryGiB: gibibytes(firstField("/proc/meminfo", "MemTotal")),
	}

	db, err := s.open(anyDatabase)
	if err != nil {
		return machine{}, err
	}

	for setting, value := range map[string]*string{
		"server_version": &found.postgres, "fsync": &found.fsync, "synchronous_commit": &found.commitMode,
	} {
		if err := db.GetContext(ctx, value, "SHOW "+setting); err != nil {
			return machine{}, fmt.Errorf("reading the setting %s of the database: %w", setting, err)
		}
	}

	return found, nil
}

func (m machine) String() string {
	postgres, _, _ := strings.Cut(m.postgres, " ")

	return fmt.Sprintf("%s, %d cores, %d GiB of memory; %s; PostgreSQL %s with its own settings: fsync %s, synchronous_commit %s",
		m.processor, m.cores, m.memoryGiB, m.goVersion, postgres, m.fsync, m.commitMode)
}

// firstField returns the value of the first line `name: value` of a file, or an empty string.
func firstField(path, name string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()

	for lines := bufio.NewScanner(file); lines.Scan(); {
		if field, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(field) == name {
			return strings.TrimSpace(value)
		}
	}

	return ""
}

// gibibytes parses a value like `16373500 kB` and rounds it.
func gibibytes(value string) int {
	const kilobytes = 1 << 20

	count, err := strconv.Atoi(strings.TrimSuffix(value, " kB"))
	if err != nil {
		return 0
	}

	return (count + kilobytes/2) / kilobytes
}
