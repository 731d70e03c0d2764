// Package project prepares the project of the garden: the objects that every garden begins with, and the rights of the project's member
// under whose name the Provisioner works.
package project
