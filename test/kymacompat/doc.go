// Package kymacompat holds this project against the system that it follows: a client of the former Provisioner works with ours, and our
// broker works with a former Provisioner, which package provisioner here plays.
package kymacompat
