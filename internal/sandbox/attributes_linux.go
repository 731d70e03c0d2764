package sandbox

import "syscall"

// attributes returns the attributes of the garden's process. The garden has a separate process group, so that Ctrl-C reaches
// only the sandbox. If the sandbox dies, the kernel stops the garden.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
