// Package format reads the formats of bundles. The class of a Bundle determines its format. Plain is the format plain+v0, which most
// BundleDeployments read. Registry is the format registry+v1, and Kustomize is the format for kustomizations. Both are converted to
// plain+v0. Helm is the format helm+v3. The BundleDeployment controller renders its charts.
package format
