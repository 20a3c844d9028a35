// As much of AWS as `muster console --stack` asks for: a stack's outputs and parts, its signing key, CloudWatch's counts, and
// its tables, which are the local stack's.

import { once } from "node:events";
import { createServer } from "node:http";

/** The variables with which a program takes this for AWS. */
export async function emulatedAws(apiUrl, { endpoint, signing_key: key, tables }) {
  const name = (table) => table.split("_").map((word) => word[0].toUpperCase() + word.slice(1)).join("");
  const outputs = Object.entries({ ApiUrl: apiUrl, SigningKeySecretArn: "arn:aws:secretsmanager:us-east-1:000000000000:secret:key", ...Object.fromEntries(Object.entries(tables).map(([table, value]) => [`${name(table)}TableName`, value])) });
  const members = outputs.map(([output, value]) => `<member><OutputKey>${output}</OutputKey><OutputValue>${value}</OutputValue></member>`).join("");
  const stacks = `<DescribeStacksResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><DescribeStacksResult><Stacks><member><StackName>muster-dev</StackName><CreationTime>2026-01-01T00:00:00Z</CreationTime><StackStatus>CREATE_COMPLETE</StackStatus><Outputs>${members}</Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`;
  const secret = JSON.stringify({ ARN: "arn", Name: "key", SecretString: Buffer.from(key, "base64").toString("latin1") });
  const resources = `<ListStackResourcesResponse><ListStackResourcesResult><StackResourceSummaries><member><ResourceType>AWS::Lambda::Function</ResourceType><LogicalResourceId>FindLobbyFunction</LogicalResourceId><PhysicalResourceId>muster-dev-find-lobby</PhysicalResourceId></member><member><ResourceType>AWS::Logs::LogGroup</ResourceType><LogicalResourceId>FunctionLogs</LogicalResourceId><PhysicalResourceId>muster-dev-FunctionLogs-1</PhysicalResourceId></member></StackResourceSummaries></ListStackResourcesResult></ListStackResourcesResponse>`;
  const asked = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    const target = request.headers["x-amz-target"];
    asked.push(target);
    const answer = target?.startsWith("Logs_") ? logs(target) : target?.startsWith("secretsmanager") ? secret : target?.endsWith(".GetMetricData") ? metricData(JSON.parse(body)) : body.includes("ListStackResources") ? resources : stacks;
    response.setHeader("content-type", answer.startsWith("{") ? "application/x-amz-json-1.1" : "text/xml").end(answer);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const own = `http://127.0.0.1:${server.address().port}`;
  const { origin, username: accessKey } = new URL(endpoint);
  const variables = { AWS_ENDPOINT_URL: own, AWS_ENDPOINT_URL_DYNAMODB: origin, AWS_ACCESS_KEY_ID: accessKey, AWS_SECRET_ACCESS_KEY: "none", AWS_REGION: "us-east-1", AWS_EC2_METADATA_DISABLED: "true" };
  return { variables, asked, close: () => server.close() };
}

/** CloudWatch Logs, in the shape of its API reference: two kinds of refusals. */
function logs(target) {
  if (target.endsWith(".StartQuery")) return JSON.stringify({ queryId: "12ab3456-12ab-123a-789e-1234567890ab" });
  const row = (fields) => Object.entries(fields).map(([field, value]) => ({ field, value }));
  return JSON.stringify({ status: "Complete", statistics: { recordsMatched: 12, recordsScanned: 90, bytesScanned: 22e6 }, results: [
    row({ "span.operation": "find-lobby", code: "MATCHMAKER_NO_SERVER_AVAILABLE", requests: "11", first: "Kx1Abc=", last: "Kx9Xyz=" }),
    row({ "span.operation": "join-lobby", code: "MATCHMAKER_LOBBY_FULL", requests: "1", first: "Kx5Def=", last: "Kx5Def=" }),
  ] });
}

/** Each minute 120 requests to the function that finds: 90 joined a lobby, 24 created one, one failed, five were refused. */
function metricData({ MetricDataQueries: queries, StartTime: start }) {
  const each = { IncomingBytes: 2e6, Invocations: 120, OperationFailed: 1, LobbyFound: 90, LobbyCreated: 24 };
  const results = queries.map(({ Id, MetricStat: { Metric: { MetricName: name }, Period: period } }) => {
    const count = period === 60 && each[name] ? 11 : 0;
    return { Id, StatusCode: "Complete", Timestamps: Array.from({ length: count }, (_, at) => start + at * period), Values: Array(count).fill(each[name]) };
  });
  return JSON.stringify({ MetricDataResults: results });
}
