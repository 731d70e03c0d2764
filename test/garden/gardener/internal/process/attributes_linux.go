package process

import "syscall"

// attributes put a server into a process group of its own: a Ctrl-C in the terminal reaches only the garden, which then stops its
// servers in order. If the garden dies, the kernel kills them.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
