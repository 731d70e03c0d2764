// Package environment is the domain model of the broker: service instances (environments), the requests that order them, and the
// operations that change them. It does not depend on protocols: package broker maps the Open Service Broker API to it, and
// internal/clients/provisionerclient maps it to the GraphQL API of the Provisioner.
//
// To add a cluster parameter, add a field to Cluster, fill it in broker/catalog, and map it in internal/clients/provisionerclient. Fields
// with JSON names are stored in the rows of instances or operations: never rename them, and read data.go before changing their
// meaning.
package environment
