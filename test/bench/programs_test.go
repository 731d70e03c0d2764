package bench

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"github.com/environment-broker/environment-broker/internal/sandbox/freeport"
	"github.com/environment-broker/environment-broker/test/harness"
)

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30

	// programTimeout limits the time until a program is ready, and the time until it has stopped.
	programTimeout = time.Minute
	// readyInterval is the time between two readiness checks. It is short, because start times are measured.
	readyInterval = 2 * time.Millisecond
	// cpuTick is the unit of CPU times in /proc on Linux.
	cpuTick = 10 * time.Millisecond

	// paused is the environment variable for a broker that accepts requests but runs no operations.
	paused = "APP_WORKERS=0"
)

// program is a running broker or floor.
type program struct {
	*scope

	// url is the base URL of the API.
	url string
	// status is the base URL of a broker's metrics. It is empty for a floor.
	status string
	// startTook is the time from the start until the program was ready.
	startTook time.Duration
	command   *exec.Cmd
	// terminate sends SIGTERM, and SIGKILL if the program has not ended after programTimeout.
	terminate context.CancelFunc
	// ended is closed when the program has ended.
	ended chan struct{}
	err   error
	log   string
}

// startBroker runs a broker on the environment's database and Provisioner until the scope ends. variables are additional
// environment variables.
func (s *scope) startBroker(e *environment, variables ...string) *program {
	address, status := s.freeAddress(), s.freeAddress()

	p := s.startProgram(s.broker, "http://"+address, "http://"+status+"/readyz", append(variables,
		"APP_ADDRESS="+address,
		"APP_STATUS_ADDRESS="+status,
		"APP_AUTH_BASIC_USERS="+harness.User+":"+harness.Password+":osb+admin",
		"APP_PROVISIONER_URL="+e.provisioner.URL,
		"APP_DATABASE_DRIVER="+e.database.Driver,
		"APP_DATABASE_USER="+e.database.User,
		"APP_DATABASE_PASSWORD="+e.database.Password.Reveal(),
		"APP_DATABASE_HOST="+e.database.Host,
		"APP_DATABASE_PORT="+e.database.Port,
		"APP_DATABASE_NAME="+e.database.Name,
		"APP_DATABASE_SSL_MODE="+e.database.SSLMode,
		"APP_DATABASE_SECRET_KEYS="+e.database.SecretKeys.Reveal(),
	))
	p.status = "http://" + status

	return p
}

// startFloor runs the floor on the environment's database until the scope ends. Its catalog response has catalogBytes bytes.
// variables are additional environment variables.
func (s *scope) startFloor(e *environment, catalogBytes int, variables ...string) *program {
	address := s.freeAddress()
	dsn, err := s.postgres.DSN(e.database.Name)
	s.check(err)

	_, err = e.db.ExecContext(s.Context(), floorTables)
	s.check(err)

	own, err := os.Executable()
	s.check(err)

	return s.startProgram(own, "http://"+address, "http://"+address+floorReady, append(variables,
		floorAddress+"="+address, floorDSN+"="+dsn, floorCatalogBytes+"="+strconv.Itoa(catalogBytes),
	))
}

// freeAddress returns a free loopback address. It never returns the same address twice.
func (s *scope) freeAddress() string {
	port, err := freeport.Draw(s.Context())
	s.check(err)

	return freeport.Address(port)
}

// startProgram starts a program with only the given environment variables, and waits until the path given in ready returns 200. The
// program runs until the scope ends.
func (s *scope) startProgram(path, url, ready string, variables []string) *program {
	log, err := os.Create(filepath.Join(s.TempDir(), "log"))
	s.check(err)
	defer log.Close()

	ctx, terminate := context.WithCancel(context.WithoutCancel(s.Context()))
	command := exec.CommandContext(ctx, path)
	command.Env, command.Stdout, command.Stderr = variables, log, log
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = programTimeout

	start := time.Now()

	s.check(command.Start())

	p := &program{scope: s, url: url, command: command, terminate: terminate, ended: make(chan struct{}), log: log.Name()}

	go func() {
		p.err = command.Wait()
		close(p.ended)
	}()

	s.Cleanup(p.stop)

	for !responds(ready) {
		select {
		case <-p.ended:
			s.Fatalf("%s ended before it was ready", path)
		case <-time.After(readyInterval):
		}

		if time.Since(start) > programTimeout {
			s.Fatalf("%s is not ready after %s", path, programTimeout)
		}
	}

	p.startTook = time.Since(start)

	return p
}

// responds reports whether a request for the URL returns 200. It leaves no idle connection to the measured program.
func responds(url string) bool {
	client := &http.Client{Timeout: programTimeout, Transport: &http.Transport{DisableKeepAlives: true}}

	response, err := client.Get(url)

	return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// stop terminates the program and waits until it has ended. A program that ends with an error fails the scenario. Repeated
// calls have no effect.
func (p *program) stop() {
	p.terminate()
	<-p.ended

	// If the program itself ended without an error, Wait returns the context's error.
	if p.err == nil || errors.Is(p.err, context.Canceled) {
		return
	}

	const lines = 20

	content, _ := os.ReadFile(p.log)
	all := strings.Split(strings.TrimSpace(string(content)), "\n")
	p.Errorf("%s: %v\n%s", p.command.Path, p.err, strings.Join(all[max(0, len(all)-lines):], "\n"))
}

func (p *program) kill() {
	_ = p.command.Process.Kill() // The program may already have ended.
	<-p.ended

	p.err = nil
}

// memory returns the program's current and peak resident memory in bytes.
func (p *program) memory() (resident, peak float64) { return p.memoryOf(p.command.Process.Pid) }

// memoryOf returns the current and peak resident memory of a process in bytes.
func (s *scope) memoryOf(id int) (resident, peak float64) {
	process, err := procfs.NewProc(id)
	s.check(err)

	status, err := process.NewStatus()
	s.check(err)

	return float64(status.VmRSS), float64(status.VmHWM)
}

// cpuOf returns the user and system time of a process and its children, including children that have ended.
func (s *scope) cpuOf(id int) (total time.Duration) {
	processes, err := procfs.AllProcs()
	s.check(err)

	for _, process := range processes {
		stat, err := process.Stat()

		switch {
		case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ESRCH): // The process has ended in the meantime.
		case err != nil:
			s.Fatalf("reading the CPU time of process %d: %v", process.PID, err)
		case process.PID == id || stat.PPID == id:
			total += time.Duration(int(stat.UTime)+int(stat.STime)+stat.CUTime+stat.CSTime) * cpuTick
		}
	}

	if total == 0 {
		s.Fatalf("reading the CPU time of process %d: no such process", id)
	}

	return total
}
