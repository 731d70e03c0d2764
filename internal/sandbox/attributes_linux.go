package sandbox

import "syscall"

// attributes put the garden into a process group of its own, so that Ctrl-C reaches only the sandbox. If the sandbox dies, the kernel stops
// the garden.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
