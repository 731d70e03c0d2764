// Package operator answers the operator API: what people and tools ask about runtimes and operations, and kubeconfigs. Its JSON is
// that of package operatorapi, its description in openapi.yaml.
package operator
