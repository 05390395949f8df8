# Least privilege, by role: --roles ingest needs the producer, --roles worker the
# consumer, a whole server both. Redriving is for people.

data "aws_iam_policy_document" "producer" {
  statement {
    sid       = "Send"
    actions   = ["sqs:SendMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl"]
    resources = [aws_sqs_queue.this.arn]
  }

  dynamic "statement" {
    for_each = var.kms_key_id == "" ? [] : [var.kms_key_id]

    content {
      sid       = "Encrypt"
      actions   = ["kms:GenerateDataKey", "kms:Decrypt"]
      resources = [statement.value]
    }
  }
}

data "aws_iam_policy_document" "consumer" {
  statement {
    sid = "Receive"

    actions = [
      "sqs:ReceiveMessage",
      "sqs:DeleteMessage",
      "sqs:ChangeMessageVisibility",
      "sqs:GetQueueAttributes",
      "sqs:GetQueueUrl",
    ]

    resources = [aws_sqs_queue.this.arn]
  }

  statement {
    sid       = "DeadLetter"
    actions   = ["sqs:SendMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl"]
    resources = [aws_sqs_queue.dead.arn]
  }

  dynamic "statement" {
    for_each = var.kms_key_id == "" ? [] : [var.kms_key_id]

    content {
      sid       = "Decrypt"
      actions   = ["kms:Decrypt", "kms:GenerateDataKey"]
      resources = [statement.value]
    }
  }
}

data "aws_iam_policy_document" "redrive" {
  statement {
    sid = "Redrive"

    actions = [
      "sqs:StartMessageMoveTask",
      "sqs:ListMessageMoveTasks",
      "sqs:CancelMessageMoveTask",
      "sqs:ReceiveMessage",
      "sqs:DeleteMessage",
      "sqs:GetQueueAttributes",
    ]

    resources = [aws_sqs_queue.dead.arn]
  }

  statement {
    sid       = "Target"
    actions   = ["sqs:SendMessage"]
    resources = [aws_sqs_queue.this.arn]
  }
}

resource "aws_iam_policy" "producer" {
  name_prefix = "${var.name}-producer-"
  policy      = data.aws_iam_policy_document.producer.json
  tags        = var.tags
}

resource "aws_iam_policy" "consumer" {
  name_prefix = "${var.name}-consumer-"
  policy      = data.aws_iam_policy_document.consumer.json
  tags        = var.tags
}

resource "aws_iam_policy" "redrive" {
  name_prefix = "${var.name}-redrive-"
  policy      = data.aws_iam_policy_document.redrive.json
  tags        = var.tags
}
