// Package environment is the domain of the broker: a service instance is an environment, ordered with a
// request, and changed by operations that share Data. It is independent of protocols: package broker maps the Open
// Service Broker API to it, and internal/provisionerclient maps it to the GraphQL API of the Provisioner.
//
// A parameter of clusters is added as a field of Cluster, filled by broker/catalog and mapped by
// internal/provisionerclient. Fields with JSON names are stored, in the rows of instances or with operations:
// never rename one, and see data.go before changing a meaning.
package environment
