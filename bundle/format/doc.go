// Package format reads the formats of bundles. The format of a Bundle follows from its class. Plain is the format plain+v0, and the
// form in which BundleDeployments read every Bundle: another format is one that converts its files to it.
package format
