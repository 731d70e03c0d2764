// Package config reads environment variables into a typed struct that contains the defaults, and lists the variables of the
// struct for the reference page.
//
// A field is a variable with the tags `env` (the name without the prefix) and `help` (the text of docs/operator/configuration.md). A struct
// field with the tag `envPrefix` groups variables with a common prefix. Errors name variables and never quote values, which may be secrets.
// docs/contributor/add-a-variable.md describes how to add a variable.
package config
