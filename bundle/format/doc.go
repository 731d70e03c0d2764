// Package format reads the formats of bundles. The format of a Bundle follows from its class. Plain is the format plain+v0, and the
// form in which BundleDeployments read every Bundle. Registry is the format registry+v1, and converts its files to plain+v0.
package format
