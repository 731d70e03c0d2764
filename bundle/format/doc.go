// Package format reads the formats of bundles. The format of a Bundle follows from its class. Plain is the format plain+v0, and the
// form in which most BundleDeployments read Bundles. Registry is the format registry+v1, and Kustomize that of kustomizations: both convert
// their files to plain+v0. Helm is the format helm+v3, whose charts are rendered by BundleDeployments.
package format
