// Package spec describes runtimes as clients order them: the cluster, its worker pools, and its Kyma installation.
//
// All packages of the Provisioner use these types for orders. They have no dependency on GraphQL: gqlgen.yml in
// provisioner/graph binds the input types of the API to them. An optional field is a pointer or a slice; nil means that the
// order omits the field. The types do not validate their fields; package validation does.
//
// The JSON tags define version 1 of the stored form, which Encode returns and Decode reads. A new optional field needs only a
// field here and a field in schema.graphql. Renaming or removing a field requires a new version, and Decode must still read the
// old version.
package spec
