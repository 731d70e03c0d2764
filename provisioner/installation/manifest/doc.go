// Package manifest reads Kubernetes objects from YAML in which texts may name values: `${key}` stands for the value of that key, `$${key}`
// for the text `${key}` itself. Values are filled in after the YAML was read, so that none can change what the file is made of: in
// quotes a value is always a text, without quotes it is a number or a boolean where it looks like one.
package manifest
