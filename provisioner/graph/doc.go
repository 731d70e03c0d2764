// Package graph is the GraphQL server of the Provisioner: it takes requests apart, checks who calls and what is asked, hands
// them to a Runtimes, and turns results and errors into what clients of this and of the former Provisioner understand.
//
// ../schema.graphql is the contract. Its types are generated into package model, its execution into package generated;
// the resolvers here are written by hand.
package graph
