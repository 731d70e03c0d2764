// Package binding is the broker's two processes for bindings: one makes access to a runtime, the other takes it away. A step a file.
package binding
