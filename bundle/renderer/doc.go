// Package renderer renders charts and kustomizations in separate processes. Templates are programs by the author of the bundle. They may
// run forever, use all memory or overflow the stack, and Go cannot contain any of this within a process. Each rendering is a process with
// the same executable, but without environment variables and HTTP requests. It ends when the rendering ends or reaches a limit.
//
// Package engines runs in these processes. Only executables that call engines.Main can render, so that other executables need not
// contain Helm and Kustomize.
package renderer
