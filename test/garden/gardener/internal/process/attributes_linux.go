package process

import "syscall"

// attributes returns the attributes with which servers are started. They put a server into a separate process group: Ctrl-C in
// the terminal then reaches only the garden, which stops its servers in order. If the garden dies, the kernel kills its servers.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
