package graph_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// fields is a JSON object in a request.
type fields map[string]any

// with returns a copy of the object with the given fields replaced. A nil value removes its field.
func (f fields) with(changes fields) fields {
	changed := maps.Clone(f)
	maps.Copy(changed, changes)
	maps.DeleteFunc(changed, func(_ string, value any) bool { return value == nil })

	return changed
}

func azureFields() fields {
	return fields{
		"name": "c-1234567", "kubernetesVersion": "1.33.2", "provider": "azure", "targetSecret": "pool", "region": "westeurope",
		"machineType": "Standard_D4s_v5", "workerCidr": "10.250.0.0/16", "autoScalerMin": 2, "autoScalerMax": 3, "maxSurge": 1,
		"maxUnavailable": 0, "providerSpecificConfig": fields{"azureConfig": azurePart()},
	}
}

func azurePart() fields {
	return fields{"vnetCidr": "10.250.0.0/16", "azureZones": []any{
		fields{"name": 1, "cidr": "10.250.0.0/19"}, fields{"name": 2, "cidr": "10.250.32.0/19"},
	}}
}

func awsPart() fields {
	return fields{"vpcCidr": "10.250.0.0/16", "awsZones": []any{fields{
		"name": "a", "workerCidr": "10.250.0.0/19", "publicCidr": "10.250.32.0/20", "internalCidr": "10.250.48.0/20",
	}}}
}

// provisionOf returns a valid order with the given changes to its cluster fields and to its other fields.
func provisionOf(cluster, changes fields) fields {
	return fields{
		"runtimeInput": fields{"name": "mine"}, "clusterConfig": fields{"gardenerConfig": azureFields().with(cluster)},
	}.with(changes)
}

// poolFields returns a valid additional worker pool.
func poolFields() fields {
	return fields{
		"name": "gpu", "machineType": "Standard_D4s_v5", "autoScalerMin": 2, "autoScalerMax": 3, "maxSurge": 1, "maxUnavailable": 0,
	}
}

// pools returns the cluster field with the additional worker pools.
func pools(all ...any) fields { return fields{"additionalWorkers": all} }

// on returns the cluster fields that select the provider. part is the provider's field in providerSpecificConfig, and config its
// value.
func on(provider, part string, config fields) fields {
	return fields{"provider": provider, "providerSpecificConfig": fields{part: config}}
}

// rule is a request that breaks a rule, with the expected message and the paths of the invalid fields.
type rule struct {
	reason string
	config fields
	want   string
	fields []string
}

const inCluster = "config.clusterConfig.gardenerConfig."

func provisionRules() map[string]rule {
	azureZones := func(zones ...any) fields {
		return on("azure", "azureConfig", azurePart().with(fields{"azureZones": zones}))
	}
	long := strings.Repeat("x", 257)

	return map[string]rule{
		"runtime name": {
			"the name is required", provisionOf(nil, fields{"runtimeInput": fields{"name": ""}}),
			"runtimeInput.name must not be empty",
			[]string{"config.runtimeInput.name"},
		},
		"long runtime name": {
			"the name has a limit", provisionOf(nil, fields{"runtimeInput": fields{"name": long}}),
			"runtimeInput.name has more than 256 characters",
			[]string{"config.runtimeInput.name"},
		},
		"administrators": {
			"each invalid administrator is reported with its index", provisionOf(nil, fields{"clusterConfig": fields{
				"gardenerConfig": azureFields(), "administrators": []any{"a", "b\n", long},
			}}),
			"clusterConfig.administrators[1] contains a character that is not printable; clusterConfig.administrators[2] has more than 256 characters",
			[]string{"config.clusterConfig.administrators[1]", "config.clusterConfig.administrators[2]"},
		},
		"many administrators": {
			"the number of administrators has a limit", provisionOf(nil, fields{"clusterConfig": fields{
				"gardenerConfig": azureFields(), "administrators": slices.Repeat([]any{"a"}, 101),
			}}),
			"clusterConfig.administrators has 101 entries, but at most 100 are allowed",
			[]string{"config.clusterConfig.administrators"},
		},
		"no components": {
			"components are required", provisionOf(nil, fields{"kymaConfig": fields{"version": "1", "components": []any{}}}),
			"kymaConfig.components must not be empty",
			[]string{"config.kymaConfig.components"},
		},
		"no agent": {
			"the runtime agent is required", provisionOf(nil, fields{"kymaConfig": fields{"version": "1", "components": []any{nil}}}),
			"kymaConfig.components[0] must not be null; kymaConfig.components must contain compass-runtime-agent",
			[]string{"config.kymaConfig.components[0]", "config.kymaConfig.components"},
		},
		"component's namespace": {
			"the namespace names a Kubernetes object", provisionOf(nil, fields{"kymaConfig": fields{"version": "1", "components": []any{
				fields{"component": "compass-runtime-agent", "namespace": "Kyma"},
			}}}),
			`kymaConfig.components[0].namespace must be a name such as kyma-system, not "Kyma"`,
			[]string{"config.kymaConfig.components[0].namespace"},
		},
		"cluster name": {
			"the name becomes part of domain names; the message keeps percent signs", provisionOf(fields{"name": "50%d--%s"}, nil),
			`name "50%d--%s" is not a valid Shoot name: `,
			[]string{inCluster + "name"},
		},
		"hyphens": {
			"two hyphens separate the names of project and Shoot", provisionOf(fields{"name": "a--b"}, nil),
			"name must not contain consecutive hyphens",
			[]string{inCluster + "name"},
		},
		"long cluster name": {
			"the names of Shoot and project together have a limit", provisionOf(fields{"name": "c-0123456789012345"}, nil),
			`name is too long: together with the project name "kyma" it has 22 characters, but the limit is 21`,
			[]string{inCluster + "name"},
		},
		"version": {
			"a version has no leading letter", provisionOf(fields{"kubernetesVersion": "v1.33"}, nil),
			`kubernetesVersion must look like 1.33 or 1.33.2, not "v1.33"`,
			[]string{inCluster + "kubernetesVersion"},
		},
		"binding": {
			"the target secret names a Kubernetes object", provisionOf(fields{"targetSecret": "-"}, nil),
			`targetSecret "-" is not a valid CredentialsBinding name: `,
			[]string{inCluster + "targetSecret"},
		},
		"image version": {
			"an image version requires an image", provisionOf(fields{"machineImageVersion": "1"}, nil),
			"machineImageVersion requires machineImage",
			[]string{inCluster + "machineImageVersion"},
		},
		"disk": {
			"a disk needs a type and a size", provisionOf(fields{"diskType": "fast"}, nil),
			"diskType and volumeSizeGB must be set together",
			[]string{inCluster + "diskType"},
		},
		"OpenStack's disk": {
			"on OpenStack the machine type determines the disk",
			provisionOf(on("openstack", "openStackConfig", fields{"zones": []any{"a"}, "loadBalancerProvider": "f5"}).with(fields{"volumeSizeGB": 1}), nil),
			"diskType and volumeSizeGB cannot be chosen with openstack",
			[]string{inCluster + "diskType"},
		},
		"counts": {
			"numbers of machines must not be negative", provisionOf(fields{"maxSurge": -1}, nil),
			"maxSurge must be between 0 and 2147483647",
			[]string{inCluster + "maxSurge"},
		},
		"minimum": {
			"the minimum must not be above the maximum", provisionOf(fields{"autoScalerMin": 4}, nil),
			"autoScalerMin must not be more than autoScalerMax",
			[]string{inCluster + "autoScalerMin"},
		},
		"zones without machines": {
			"each zone needs at least one machine", provisionOf(fields{"autoScalerMin": 1, "autoScalerMax": 1}, nil),
			"autoScalerMax must be at least the number of zones, which is 2",
			[]string{inCluster + "autoScalerMax"},
		},
		"no room": {
			"a rolling update must add or remove a machine", provisionOf(fields{"maxSurge": 0}, nil),
			"maxSurge and maxUnavailable must not both be 0, because no machine could then be replaced",
			[]string{inCluster + "maxSurge"},
		},
		"purpose": {
			"the purpose must be known", provisionOf(fields{"purpose": "100%"}, nil),
			`purpose must be one of evaluation, testing, development, production, not "100%"`,
			[]string{inCluster + "purpose"},
		},
		"provider": {
			"the provider must be known", provisionOf(fields{"provider": "alicloud"}, nil),
			`provider must be one of aws, azure, gcp, openstack, not "alicloud"`,
			[]string{inCluster + "provider"},
		},
		"other part": {
			"the configuration must match the provider", provisionOf(fields{"provider": "gcp"}, nil),
			"providerSpecificConfig must contain the configuration for provider gcp and no other",
			[]string{inCluster + "providerSpecificConfig"},
		},
		"no range": {
			"ranges must be in CIDR notation", provisionOf(fields{"podsCidr": "everything"}, nil),
			`podsCidr must be an IPv4 range such as 10.250.0.0/16, not "everything"`,
			[]string{inCluster + "podsCidr"},
		},
		"range within": {
			"a range must be written with its first address", provisionOf(fields{"servicesCidr": "10.104.1.0/13"}, nil),
			"servicesCidr must start at the first address of its range: 10.104.0.0/13, not 10.104.1.0/13",
			[]string{inCluster + "servicesCidr"},
		},
		"outside": {
			"zones must be within the network", provisionOf(azureZones(fields{"name": 1, "cidr": "10.0.0.0/19"}), nil),
			"azureConfig.azureZones[0].cidr must be within azureConfig.vnetCidr, which is 10.250.0.0/16",
			[]string{inCluster + "providerSpecificConfig.azureConfig.azureZones[0].cidr"},
		},
		"overlap": {
			"ranges must not overlap", provisionOf(fields{"podsCidr": "10.250.0.0/24"}, nil),
			"podsCidr overlaps azureConfig.vnetCidr, which is 10.250.0.0/16",
			[]string{inCluster + "podsCidr"},
		},
		"zone twice": {
			"zones must not be repeated", provisionOf(on("gcp", "gcpConfig", fields{"zones": []any{"a", "a"}}), nil),
			`gcpConfig.zones[1] repeats "a"`,
			[]string{inCluster + "providerSpecificConfig.gcpConfig.zones[1]"},
		},
		"zone null": {
			"the schema allows null",
			provisionOf(on("aws", "awsConfig", awsPart().with(fields{"awsZones": []any{nil}})), nil),
			"awsConfig.awsZones[0] must not be null",
			[]string{inCluster + "providerSpecificConfig.awsConfig.awsZones[0]"},
		},
		"zone number": {
			"zones on Azure start at 1", provisionOf(azureZones(fields{"name": 0, "cidr": "10.250.0.0/19"}), nil),
			"azureConfig.azureZones[0].name must be at least 1",
			[]string{inCluster + "providerSpecificConfig.azureConfig.azureZones[0].name"},
		},
		"zones both ways": {
			"the two lists of zones cannot be combined", provisionOf(on("azure", "azureConfig", azurePart().with(fields{"zones": []any{"1"}})), nil),
			"azureConfig.azureZones cannot be combined with azureConfig.zones",
			[]string{inCluster + "providerSpecificConfig.azureConfig.azureZones"},
		},
		"idle time-out": {
			"Azure limits the timeout", provisionOf(on("azure", "azureConfig", azurePart().with(fields{"idleConnectionTimeoutMinutes": 3})), nil),
			"azureConfig.idleConnectionTimeoutMinutes must be between 4 and 120",
			[]string{inCluster + "providerSpecificConfig.azureConfig.idleConnectionTimeoutMinutes"},
		},
		"identity provider": {
			"the issuer must use https and an algorithm of kube-apiserver", provisionOf(fields{"oidcConfig": fields{
				"clientID": "c", "groupsClaim": "g", "issuerURL": "http://issuer", "signingAlgs": []any{"none"}, "usernameClaim": "u", "usernamePrefix": "-",
			}}, nil),
			`oidcConfig.issuerURL must be an https URL without user, query or fragment, not "http://issuer"; ` +
				"oidcConfig.signingAlgs[0] must be one of ",
			[]string{inCluster + "oidcConfig.issuerURL", inCluster + "oidcConfig.signingAlgs[0]"},
		},
		"domain": {
			"a domain has one primary provider", provisionOf(fields{"dnsConfig": fields{"domain": "no domain", "providers": []any{nil}}}, nil),
			`dnsConfig.domain "no domain" is not a domain: `,
			[]string{inCluster + "dnsConfig.domain", inCluster + "dnsConfig.providers[0]", inCluster + "dnsConfig.providers"},
		},
		"primary provider": {
			"a primary provider is required", provisionOf(fields{"dnsConfig": fields{"domain": "example.com", "providers": []any{fields{
				"domainsInclude": []any{"example.com"}, "primary": false, "secretName": "s", "type": "t",
			}}}}, nil),
			"dnsConfig.providers must contain exactly one primary provider, not 0",
			[]string{inCluster + "dnsConfig.providers"},
		},
		"name of a pool": {
			"the name of the pool is part of the names of its machines", provisionOf(pools(poolFields().with(fields{"name": "GPU with a long name"})), nil),
			`additionalWorkers[0].name "GPU with a long name" is not a valid worker pool name: `,
			[]string{inCluster + "additionalWorkers[0].name"},
		},
		"long name of a pool": {
			"the name of the pool has a limit", provisionOf(pools(poolFields().with(fields{"name": "sixteen-letters-" + "x"})), nil),
			"additionalWorkers[0].name has 17 characters, but at most 15 are allowed",
			[]string{inCluster + "additionalWorkers[0].name"},
		},
		"zone of a pool": {
			"the pool may only use zones of the cluster", provisionOf(pools(poolFields().with(fields{"zones": []any{"3"}})), nil),
			`additionalWorkers[0].zones[0] must be a zone of the cluster, not "3"`,
			[]string{inCluster + "additionalWorkers[0].zones[0]"},
		},
		"many labels": {
			"the number of labels has a limit", provisionOf(nil, fields{"runtimeInput": fields{"name": "mine", "labels": manyLabels(101)}}),
			"runtimeInput.labels has 101 fields, but at most 100 are allowed",
			[]string{"config.runtimeInput.labels"},
		},
		"long text in a label": {
			"texts have a limit, also in values of any type",
			provisionOf(nil, fields{"runtimeInput": fields{"name": "mine", "labels": fields{"a": []any{strings.Repeat("x", 1025)}}}}),
			"runtimeInput.labels[0] has 1025 characters, but at most 1024 are allowed",
			[]string{"config.runtimeInput.labels[0]"},
		},
		"long text": {
			"texts have a limit", provisionOf(fields{"region": strings.Repeat("x", 1025)}, nil),
			"clusterConfig.gardenerConfig.region has 1025 characters, but at most 1024 are allowed",
			[]string{inCluster + "region"},
		},
		"many zones": {
			"lists of zones have a limit, because their ranges are compared in pairs",
			provisionOf(on("gcp", "gcpConfig", fields{"zones": slices.Repeat([]any{"a"}, 17)}), nil),
			"zones has 17 entries, but at most 16 are allowed",
			[]string{inCluster + "providerSpecificConfig.gcpConfig.zones"},
		},
		"quoted text": {
			"messages quote at most 100 characters", provisionOf(fields{"name": strings.Repeat("N", 1000)}, nil),
			`name "` + strings.Repeat("N", 50) + "…" + strings.Repeat("N", 49) + `" is not a valid Shoot name`,
			[]string{inCluster + "name"},
		},
		"labels": {
			"labels must be an object", provisionOf(nil, fields{"runtimeInput": fields{"name": "mine", "labels": "none"}}),
			"labels must be a JSON object",
			[]string{"config.runtimeInput.labels"},
		},
	}
}

// manyLabels returns the given number of labels.
func manyLabels(count int) fields {
	labels := fields{}
	for i := range count {
		labels[fmt.Sprintf("label-%d", i)] = "value"
	}

	return labels
}

func upgradeRules() map[string]rule {
	change := func(config fields) fields { return fields{"gardenerConfig": config} }

	return map[string]rule{
		"empty": {
			"an empty text is ambiguous", change(fields{"purpose": ""}),
			"purpose must not be empty",
			[]string{"config.gardenerConfig.purpose"},
		},
		"downgrade": {
			"Kubernetes cannot be downgraded", change(fields{"kubernetesVersion": "1.32.1"}),
			"kubernetesVersion must not be lower than the current version 1.33.2",
			[]string{"config.gardenerConfig.kubernetesVersion"},
		},
		"skip": {
			"minor versions cannot be skipped", change(fields{"kubernetesVersion": "1.35.1"}),
			"kubernetesVersion must not skip a minor version: the current version is 1.33.2",
			[]string{"config.gardenerConfig.kubernetesVersion"},
		},
		"zones of a pool": {
			"machines cannot move to another zone", change(pools(poolFields().with(fields{"zones": []any{"2"}}))),
			"additionalWorkers[0].zones must start with the current zones, in the same order: 1, 2",
			[]string{"config.gardenerConfig.additionalWorkers[0].zones"},
		},
		"network": {
			"networks cannot be changed", change(fields{"providerSpecificConfig": fields{"azureConfig": azurePart().with(fields{"vnetCidr": "10.0.0.0/8"})}}),
			"azureConfig.vnetCidr cannot be changed after the cluster is created",
			[]string{"config.gardenerConfig.providerSpecificConfig.azureConfig.vnetCidr"},
		},
		"administrators": {
			"administrators are validated too", change(fields{}).with(fields{"administrators": []any{""}}),
			"administrators[0] must not be empty",
			[]string{"config.administrators[0]"},
		},
	}
}
