// Package spec describes runtimes as clients order them: the cluster, its worker pools and the Kyma on it.
//
// It is the Provisioner's own vocabulary. Validation, the Shoot builder, the installation and the processes import this package
// and none that speaks GraphQL; gqlgen.yml in provisioner/graph binds the input types of the API to it.
//
// The JSON tags are the stored form, version 1: the database holds an order as Encode writes it. A new optional field needs
// nothing but a field here and one in schema.graphql. A renamed or removed field needs a new version, and Decode has to read the
// old one.
package spec
