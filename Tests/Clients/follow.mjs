// Prints the ids of jobs that become ready until it is killed: follow.mjs CLIENT GATEWAY.
const [client, gateway] = process.argv.slice(2);
const { Halcyon } = await import(client);
const halcyon = new Halcyon(gateway);
const after = await halcyon.cursor();
console.log("begun");
for await (const { event, gap } of halcyon.events({ types: ["ready"], after })) console.log(event?.data.job.id ?? `gap: ${gap}`);
