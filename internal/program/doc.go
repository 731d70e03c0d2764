// Package program contains what every binary of the project needs: arguments, configuration through environment variables, help,
// version and exit code.
//
//   - program.go: the main function of a binary. --help and --version need no configuration and do not start the program. To add a
//     flag to a program, register the flag in Program.Flags in the program's main package.
//   - config.go: reads environment variables into a typed struct that contains the defaults. A field is a variable with the tags
//     `env` (the name without the prefix) and `help` (the text of docs/operator/configuration.md). A struct field with the tag
//     `envPrefix` groups variables with a common prefix. Errors name variables and never quote values, which may be secrets.
//     docs/contributor/add-a-variable.md describes how to add a variable.
//   - reference.go: lists the variables of a struct for --help and for the reference page.
//   - buildinfo.go: the version and commit of the running binary, as recorded by the Go toolchain.
package program
