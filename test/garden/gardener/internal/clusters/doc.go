// Package clusters provides the API servers of runtimes in three modes: one kube-apiserver per runtime ([Own]), one for all
// runtimes ([Shared]), or none ([Simulated]). In the last mode, the garden itself serves a few kinds of objects for each runtime.
//
// All modes implement gardenlet.Runtimes. Start and Stop are idempotent and can be repeated after a crash of the garden. A
// runtime has the same address, CA and objects until it is stopped. To add a mode, implement the interface and add a value to
// localgarden.RuntimesMode.
package clusters
