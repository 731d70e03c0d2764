// Package format reads the formats of bundles. The class of a Bundle determines its format. Plain is the plain+v0 format, which
// most BundleDeployments read. Registry is the registry+v1 format, and Kustomize is the format for kustomizations. Both are
// converted to plain+v0. Helm is the helm+v3 format, whose charts the BundleDeployment controller renders.
package format
