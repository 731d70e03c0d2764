// Package renderer renders charts and kustomizations in separate processes. Templates are programs that the author of the bundle
// writes. They may run forever, use all memory or overflow the stack, and Go cannot contain any of this within a process.
// Therefore, each rendering runs in a separate process of the same executable, without environment variables and without access to
// HTTP. The process ends when the rendering ends or reaches a limit.
//
// Package engines runs in these processes. Only executables that call engines.Main can render; all others need not contain Helm
// and Kustomize.
package renderer
