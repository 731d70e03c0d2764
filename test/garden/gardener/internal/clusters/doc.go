// Package clusters provides the runtimes of the local garden in three modes: a kube-apiserver for each runtime (Own), one for all of them
// (Shared), or none (Simulated): the garden itself serves a few kinds of objects for each.
package clusters
