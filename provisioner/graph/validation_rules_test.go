package graph_test

import (
	"maps"
	"slices"
	"strings"
)

// fields is an object of a request.
type fields map[string]any

// with returns the object with others of its fields; nil takes one away.
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

// provisionOf is an order with another cluster, and changed above it.
func provisionOf(cluster, changes fields) fields {
	return fields{
		"runtimeInput": fields{"name": "mine"}, "clusterConfig": fields{"gardenerConfig": azureFields().with(cluster)},
	}.with(changes)
}

// poolFields is a pool beside the first one.
func poolFields() fields {
	return fields{
		"name": "gpu", "machineType": "Standard_D4s_v5", "autoScalerMin": 2, "autoScalerMax": 3, "maxSurge": 1, "maxUnavailable": 0,
	}
}

// pools are the pools of a cluster beside the first one.
func pools(all ...any) fields { return fields{"additionalWorkers": all} }

// on is a cluster on another provider.
func on(provider, part string, config fields) fields {
	return fields{"provider": provider, "providerSpecificConfig": fields{part: config}}
}

// rule is an order that breaks a rule, with the expected message and fields.
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
			"it is needed", provisionOf(nil, fields{"runtimeInput": fields{"name": ""}}),
			"runtimeInput.name must not be empty",
			[]string{"config.runtimeInput.name"},
		},
		"long runtime name": {
			"it has a limit", provisionOf(nil, fields{"runtimeInput": fields{"name": long}}),
			"runtimeInput.name has more than 256 characters",
			[]string{"config.runtimeInput.name"},
		},
		"administrators": {
			"each has its place", provisionOf(nil, fields{"clusterConfig": fields{
				"gardenerConfig": azureFields(), "administrators": []any{"a", "b\n", long},
			}}),
			"clusterConfig.administrators[1] contains a character that is not printable; clusterConfig.administrators[2] has more than 256 characters",
			[]string{"config.clusterConfig.administrators[1]", "config.clusterConfig.administrators[2]"},
		},
		"many administrators": {
			"their number has a limit", provisionOf(nil, fields{"clusterConfig": fields{
				"gardenerConfig": azureFields(), "administrators": slices.Repeat([]any{"a"}, 101),
			}}),
			"clusterConfig.administrators has 101 entries, at most 100 are allowed",
			[]string{"config.clusterConfig.administrators"},
		},
		"no components": {
			"Kyma without components is none", provisionOf(nil, fields{"kymaConfig": fields{"version": "1", "components": []any{}}}),
			"kymaConfig.components must not be empty",
			[]string{"config.kymaConfig.components"},
		},
		"no agent": {
			"Kyma needs its agent", provisionOf(nil, fields{"kymaConfig": fields{"version": "1", "components": []any{nil}}}),
			"kymaConfig.components[0] must not be null; kymaConfig.components must contain compass-runtime-agent",
			[]string{"config.kymaConfig.components[0]", "config.kymaConfig.components"},
		},
		"component's namespace": {
			"it names an object", provisionOf(nil, fields{"kymaConfig": fields{"version": "1", "components": []any{
				fields{"component": "compass-runtime-agent", "namespace": "Kyma"},
			}}}),
			`kymaConfig.components[0].namespace must be a name such as kyma-system, not "Kyma"`,
			[]string{"config.kymaConfig.components[0].namespace"},
		},
		"cluster name": {
			"it becomes a part of domain names, and percent signs in it stay what they are", provisionOf(fields{"name": "50%d--%s"}, nil),
			`name "50%d--%s" cannot name a Shoot: `,
			[]string{inCluster + "name"},
		},
		"hyphens": {
			"two separate it from the project's", provisionOf(fields{"name": "a--b"}, nil),
			"name must not contain consecutive hyphens",
			[]string{inCluster + "name"},
		},
		"long cluster name": {
			"it has a limit together with the project's", provisionOf(fields{"name": "c-0123456789012345"}, nil),
			`name and the project name "kyma" have 22 characters together, at most 21 are allowed`,
			[]string{inCluster + "name"},
		},
		"version": {
			"it is a number", provisionOf(fields{"kubernetesVersion": "v1.33"}, nil),
			`kubernetesVersion must look like 1.33 or 1.33.2, not "v1.33"`,
			[]string{inCluster + "kubernetesVersion"},
		},
		"binding": {
			"it names an object", provisionOf(fields{"targetSecret": "-"}, nil),
			`targetSecret "-" cannot name a credentials binding: `,
			[]string{inCluster + "targetSecret"},
		},
		"image version": {
			"a version of no image says nothing", provisionOf(fields{"machineImageVersion": "1"}, nil),
			"machineImageVersion requires machineImage",
			[]string{inCluster + "machineImageVersion"},
		},
		"disk": {
			"it needs type and size", provisionOf(fields{"diskType": "fast"}, nil),
			"diskType and volumeSizeGB require each other",
			[]string{inCluster + "diskType"},
		},
		"OpenStack's disk": {
			"the machine type decides on it",
			provisionOf(on("openstack", "openStackConfig", fields{"zones": []any{"a"}, "loadBalancerProvider": "f5"}).with(fields{"volumeSizeGB": 1}), nil),
			"diskType and volumeSizeGB cannot be chosen with openstack",
			[]string{inCluster + "diskType"},
		},
		"counts": {
			"there are no machines less than none", provisionOf(fields{"maxSurge": -1}, nil),
			"maxSurge must be between 0 and 2147483647",
			[]string{inCluster + "maxSurge"},
		},
		"minimum": {
			"it is not above the maximum", provisionOf(fields{"autoScalerMin": 4}, nil),
			"autoScalerMin must not be more than autoScalerMax",
			[]string{inCluster + "autoScalerMin"},
		},
		"zones without machines": {
			"each may get one", provisionOf(fields{"autoScalerMin": 1, "autoScalerMax": 1}, nil),
			"autoScalerMax must be at least the number of zones, which is 2",
			[]string{inCluster + "autoScalerMax"},
		},
		"no room": {
			"an update replaces machines", provisionOf(fields{"maxSurge": 0}, nil),
			"maxSurge and maxUnavailable must not both be 0: no machine could be replaced",
			[]string{inCluster + "maxSurge"},
		},
		"purpose": {
			"there are four", provisionOf(fields{"purpose": "100%"}, nil),
			`purpose must be one of evaluation, testing, development, production, not "100%"`,
			[]string{inCluster + "purpose"},
		},
		"provider": {
			"there are four", provisionOf(fields{"provider": "alicloud"}, nil),
			`provider must be one of aws, azure, gcp, openstack, not "alicloud"`,
			[]string{inCluster + "provider"},
		},
		"other part": {
			"the part is the provider's", provisionOf(fields{"provider": "gcp"}, nil),
			"providerSpecificConfig must have the part for provider gcp and no other",
			[]string{inCluster + "providerSpecificConfig"},
		},
		"no range": {
			"addresses are in CIDR notation", provisionOf(fields{"podsCidr": "everything"}, nil),
			`podsCidr must be an IPv4 range such as 10.250.0.0/16, not "everything"`,
			[]string{inCluster + "podsCidr"},
		},
		"range within": {
			"a range starts where it starts", provisionOf(fields{"servicesCidr": "10.104.1.0/13"}, nil),
			"servicesCidr must start at the first address of its range: 10.104.0.0/13, not 10.104.1.0/13",
			[]string{inCluster + "servicesCidr"},
		},
		"outside": {
			"zones are in the network", provisionOf(azureZones(fields{"name": 1, "cidr": "10.0.0.0/19"}), nil),
			"azureConfig.azureZones[0].cidr must be within azureConfig.vnetCidr, which is 10.250.0.0/16",
			[]string{inCluster + "providerSpecificConfig.azureConfig.azureZones[0].cidr"},
		},
		"overlap": {
			"ranges share nothing", provisionOf(fields{"podsCidr": "10.250.0.0/24"}, nil),
			"podsCidr overlaps azureConfig.vnetCidr, which is 10.250.0.0/16",
			[]string{inCluster + "podsCidr"},
		},
		"zone twice": {
			"each is named once", provisionOf(on("gcp", "gcpConfig", fields{"zones": []any{"a", "a"}}), nil),
			`gcpConfig.zones[1] repeats "a"`,
			[]string{inCluster + "providerSpecificConfig.gcpConfig.zones[1]"},
		},
		"zone null": {
			"the schema lets it through",
			provisionOf(on("aws", "awsConfig", awsPart().with(fields{"awsZones": []any{nil}})), nil),
			"awsConfig.awsZones[0] must not be null",
			[]string{inCluster + "providerSpecificConfig.awsConfig.awsZones[0]"},
		},
		"zone number": {
			"Azure counts from one", provisionOf(azureZones(fields{"name": 0, "cidr": "10.250.0.0/19"}), nil),
			"azureConfig.azureZones[0].name must be at least 1",
			[]string{inCluster + "providerSpecificConfig.azureConfig.azureZones[0].name"},
		},
		"zones both ways": {
			"they exclude each other", provisionOf(on("azure", "azureConfig", azurePart().with(fields{"zones": []any{"1"}})), nil),
			"azureConfig.azureZones and azureConfig.zones exclude each other",
			[]string{inCluster + "providerSpecificConfig.azureConfig.azureZones"},
		},
		"idle time-out": {
			"Azure has limits", provisionOf(on("azure", "azureConfig", azurePart().with(fields{"idleConnectionTimeoutMinutes": 3})), nil),
			"azureConfig.idleConnectionTimeoutMinutes must be between 4 and 120",
			[]string{inCluster + "providerSpecificConfig.azureConfig.idleConnectionTimeoutMinutes"},
		},
		"identity provider": {
			"its issuer can be trusted, and signs as clusters can check", provisionOf(fields{"oidcConfig": fields{
				"clientID": "c", "groupsClaim": "g", "issuerURL": "http://issuer", "signingAlgs": []any{"none"}, "usernameClaim": "u", "usernamePrefix": "-",
			}}, nil),
			`oidcConfig.issuerURL must be an https URL without user, query and fragment, not "http://issuer"; ` +
				"oidcConfig.signingAlgs[0] must be one of ",
			[]string{inCluster + "oidcConfig.issuerURL", inCluster + "oidcConfig.signingAlgs[0]"},
		},
		"domain": {
			"it has one primary provider", provisionOf(fields{"dnsConfig": fields{"domain": "no domain", "providers": []any{nil}}}, nil),
			`dnsConfig.domain "no domain" is not a domain: `,
			[]string{inCluster + "dnsConfig.domain", inCluster + "dnsConfig.providers[0]", inCluster + "dnsConfig.providers"},
		},
		"primary provider": {
			"there is one", provisionOf(fields{"dnsConfig": fields{"domain": "example.com", "providers": []any{fields{
				"domainsInclude": []any{"example.com"}, "primary": false, "secretName": "s", "type": "t",
			}}}}, nil),
			"dnsConfig.providers must have one primary provider, not 0",
			[]string{inCluster + "dnsConfig.providers"},
		},
		"name of a pool": {
			"machines are called by it", provisionOf(pools(poolFields().with(fields{"name": "GPU with a long name"})), nil),
			`additionalWorkers[0].name "GPU with a long name" cannot name a worker pool: `,
			[]string{inCluster + "additionalWorkers[0].name"},
		},
		"long name of a pool": {
			"the rest of a machine's name needs its room", provisionOf(pools(poolFields().with(fields{"name": "sixteen-letters-" + "x"})), nil),
			"additionalWorkers[0].name has 17 characters, at most 15 are allowed",
			[]string{inCluster + "additionalWorkers[0].name"},
		},
		"zone of a pool": {
			"the cluster has no network in others", provisionOf(pools(poolFields().with(fields{"zones": []any{"3"}})), nil),
			`additionalWorkers[0].zones[0] must be a zone of the cluster, not "3"`,
			[]string{inCluster + "additionalWorkers[0].zones[0]"},
		},
		"labels": {
			"GraphQL itself does not know what they are", provisionOf(nil, fields{"runtimeInput": fields{"name": "mine", "labels": "none"}}),
			"labels must be a JSON object, not string",
			[]string{"config.runtimeInput.labels"},
		},
	}
}

func upgradeRules() map[string]rule {
	change := func(config fields) fields { return fields{"gardenerConfig": config} }

	return map[string]rule{
		"empty": {
			"whether it stays or goes cannot be told", change(fields{"purpose": ""}),
			"purpose must not be empty",
			[]string{"config.gardenerConfig.purpose"},
		},
		"downgrade": {
			"Kubernetes does not go back", change(fields{"kubernetesVersion": "1.32.1"}),
			"kubernetesVersion must not be lower than the current version 1.33.2",
			[]string{"config.gardenerConfig.kubernetesVersion"},
		},
		"skip": {
			"nor two steps at once", change(fields{"kubernetesVersion": "1.35.1"}),
			"kubernetesVersion must not skip a minor version: the current version is 1.33.2",
			[]string{"config.gardenerConfig.kubernetesVersion"},
		},
		"zones of a pool": {
			"machines cannot move", change(pools(poolFields().with(fields{"zones": []any{"2"}}))),
			"additionalWorkers[0].zones must start with the zones of the pool: 1, 2",
			[]string{"config.gardenerConfig.additionalWorkers[0].zones"},
		},
		"network": {
			"it is built already", change(fields{"providerSpecificConfig": fields{"azureConfig": azurePart().with(fields{"vnetCidr": "10.0.0.0/8"})}}),
			"azureConfig.vnetCidr cannot be changed after the cluster is created",
			[]string{"config.gardenerConfig.providerSpecificConfig.azureConfig.vnetCidr"},
		},
		"administrators": {
			"they stand beside the cluster", change(fields{}).with(fields{"administrators": []any{""}}),
			"administrators[0] must not be empty",
			[]string{"config.administrators[0]"},
		},
	}
}
