package process

import "syscall"

// attributes runs a server in a separate process group, so that Ctrl-C in the terminal reaches only the garden, which then stops
// its servers in order. If the garden dies, the kernel kills the servers.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
