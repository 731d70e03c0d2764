// Package installation installs Kyma on clusters. It defines plans and reads manifests. Releases turns an order into a Plan,
// which lists components of a release with their values. An Installer applies the plan to a cluster, a bounded amount of work at
// a time. Package releases implements Releases, and package applier implements Installer.
//
// Manifests are YAML with placeholders: `${key}` stands for a value, `$${key}` for the literal text `${key}`. Placeholders are
// replaced after the YAML has been parsed, so that no value can change the structure of an object. A quoted placeholder is always
// a string. An unquoted placeholder becomes a number or a boolean if its value looks like one.
package installation
