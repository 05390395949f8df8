# A queue and its dead-letter queue, as `forebay doctor` wants them.

locals {
  suffix = var.fifo ? ".fifo" : ""
}

resource "aws_sqs_queue" "dead" {
  name       = "${var.name}-dead${local.suffix}"
  fifo_queue = var.fifo

  # The age of a message of a standard queue goes on here, so this must keep longer.
  message_retention_seconds = 1209600

  sqs_managed_sse_enabled = var.kms_key_id == "" ? true : null
  kms_master_key_id       = var.kms_key_id == "" ? null : var.kms_key_id
  tags                    = var.tags
}

resource "aws_sqs_queue" "this" {
  name       = "${var.name}${local.suffix}"
  fifo_queue = var.fifo

  # Events name themselves: the deduplication id is the event's. High throughput:
  # groups are users, so both are counted by group.
  content_based_deduplication = false
  deduplication_scope         = var.fifo ? "messageGroup" : null
  fifo_throughput_limit       = var.fifo ? "perMessageGroupId" : null

  visibility_timeout_seconds = var.visibility_timeout
  message_retention_seconds  = var.retention
  receive_wait_time_seconds  = 20 # for consumers that do not say; Forebay does
  max_message_size           = 1048576

  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead.arn
    maxReceiveCount     = var.max_receive_count
  })

  sqs_managed_sse_enabled = var.kms_key_id == "" ? true : null
  kms_master_key_id       = var.kms_key_id == "" ? null : var.kms_key_id
  tags                    = var.tags
}

# A resource of its own: each of the two names the other.
resource "aws_sqs_queue_redrive_allow_policy" "dead" {
  queue_url = aws_sqs_queue.dead.id

  redrive_allow_policy = jsonencode({
    redrivePermission = "byQueue"
    sourceQueueArns   = [aws_sqs_queue.this.arn]
  })
}

data "aws_iam_policy_document" "tls_only" {
  for_each = {
    this = aws_sqs_queue.this.arn
    dead = aws_sqs_queue.dead.arn
  }

  statement {
    sid       = "TLSOnly"
    effect    = "Deny"
    actions   = ["sqs:*"]
    resources = [each.value]

    principals {
      type        = "*"
      identifiers = ["*"]
    }

    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }
}

resource "aws_sqs_queue_policy" "this" {
  queue_url = aws_sqs_queue.this.id
  policy    = data.aws_iam_policy_document.tls_only["this"].json
}

resource "aws_sqs_queue_policy" "dead" {
  queue_url = aws_sqs_queue.dead.id
  policy    = data.aws_iam_policy_document.tls_only["dead"].json
}
