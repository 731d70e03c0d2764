// Package clusters provides the API servers of runtimes in three modes: a kube-apiserver for each runtime ([Own]), one for all of
// them ([Shared]), or none ([Simulated]), where the garden itself serves objects of a few kinds for each runtime.
//
// All of them implement gardenlet.Runtimes. Start and Stop are idempotent and may be repeated after a crash of the garden: a
// runtime keeps its address, its authority and its objects until Stop. A new mode implements the same interface and gets a value
// of localgarden.RuntimesMode.
package clusters
