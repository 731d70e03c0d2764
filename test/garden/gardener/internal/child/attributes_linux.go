package child

import "syscall"

// attributes put a child into a process group of its own, so that a Ctrl-C in the terminal reaches only the garden, which then stops
// its children in order; and let the kernel kill it when the garden dies without having done so.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
