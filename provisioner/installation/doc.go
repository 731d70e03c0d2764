// Package installation defines plans: the Kyma components for a runtime, with their values and manifests. Releases makes a Plan of an
// order; an Installer installs the plan on the cluster, a bounded amount of work at a time. Package catalog implements Releases, package
// applier Installer.
//
// Manifests are YAML with placeholders: `${key}` stands for a value, `$${key}` for the text `${key}` itself. They are replaced after the
// YAML was parsed, so that no value can change its structure. A quoted placeholder is always a string; an unquoted one is a number or a
// boolean if its value looks like one.
package installation
