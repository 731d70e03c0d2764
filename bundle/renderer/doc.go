// Package renderer renders charts and kustomizations in processes of their own. Templates are programs of the bundle's author: they may
// run for ever, use all memory or overflow the stack, and Go can contain none of that within a process. Each rendering is a process with
// the same executable, without environment variables and network clients. It ends when the rendering does or a limit is reached.
//
// Package engines is the other side. Only executables that call engines.Main can render, so that no other one contains Helm and Kustomize.
package renderer
